import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.server.util.Scheduler;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;

/** A partition's log: opened and closed as a broker does that starts and stops cleanly. */
final class PartitionLog {
    private PartitionLog() { }

    static final long PRODUCER_ID_EXPIRATION_MS = 86_400_000L;

    static LogConfig logConfig(Map<String, String> config) {
        Properties p = new Properties();
        p.put("cleanup.policy", "compact");
        p.put("file.delete.delay.ms", "0");
        // Kafka refuses a segment.bytes below 1 MiB from users; its own tests say it this way
        config.forEach((k, v) -> p.put(k.equals("segment.bytes") && Long.parseLong(v) < 1 << 20 ? "internal.segment.bytes" : k, v));
        for (Object name : p.keySet())
            if (!LogConfig.configNames().contains((String) name) && !((String) name).startsWith("internal."))
                throw new IllegalArgumentException("no topic configuration is named " + name);
        return new LogConfig(p);
    }

    static Map<TopicPartition, Long> checkpoint(File logDir, String name) throws IOException {
        File f = new File(logDir, name);
        return f.exists() ? new OffsetCheckpointFile(f, null).read() : new HashMap<>();
    }

    static void writeCheckpoint(File logDir, String name, TopicPartition tp, long offset) throws IOException {
        Map<TopicPartition, Long> all = new HashMap<>(checkpoint(logDir, name));
        all.put(tp, offset);
        new OffsetCheckpointFile(new File(logDir, name), null).write(all);
    }

    static UnifiedLog open(File logDir, TopicPartition tp, LogConfig config, StillClock clock, boolean clean) throws IOException {
        File dir = new File(logDir, tp.topic() + "-" + tp.partition());
        UnifiedLog log = UnifiedLog.create(
            dir, config,
            checkpoint(logDir, "log-start-offset-checkpoint").getOrDefault(tp, 0L),
            checkpoint(logDir, "recovery-point-offset-checkpoint").getOrDefault(tp, 0L),
            new Deletions(), new BrokerTopicStats(), clock, 300_000,
            new ProducerStateManagerConfig((int) PRODUCER_ID_EXPIRATION_MS, false),
            600_000, new LogDirFailureChannel(10), clean, Optional.empty());
        Long hw = checkpoint(logDir, "replication-offset-checkpoint").get(tp);
        log.updateHighWatermark(hw == null ? log.logEndOffset() : hw);
        return log;
    }

    static void close(File logDir, UnifiedLog closing) throws IOException {
        TopicPartition tp = closing.topicPartition();
        closing.flush(true);
        long end = closing.logEndOffset(), start = closing.logStartOffset();
        closing.close();
        writeCheckpoint(logDir, "recovery-point-offset-checkpoint", tp, end);
        writeCheckpoint(logDir, "log-start-offset-checkpoint", tp, start);
        Files.writeString(new File(logDir, ".kafka_cleanshutdown").toPath(), "{\"version\":0,\"brokerEpoch\":-1}");
    }

    /** Runs deletions and flushes at once, and nothing else ever. */
    private static final class Deletions implements Scheduler {
        public void startup() { }

        public void shutdown() { }

        public void resizeThreadPool(int n) { }

        public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
            if (periodMs < 0 && (name.contains("delete") || name.contains("flush"))) task.run();
            return new Never();
        }
    }

    static final class Never extends CompletableFuture<Void> implements ScheduledFuture<Void> {
        public long getDelay(TimeUnit unit) {
            return 0;
        }

        public int compareTo(Delayed other) {
            return 0;
        }
    }
}
