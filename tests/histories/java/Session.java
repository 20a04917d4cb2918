import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import kafka.log.LogManager;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.metadata.ConfigRepository;
import org.apache.kafka.server.util.FileLock;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.CleanerConfig;
import org.apache.kafka.storage.internals.log.LogCleaner;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import scala.Function1;
import scala.Function5;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentMap;

/** A broker's log manager from its start to its stop or its death. No thread of its own cleans or deletes: each happens when it is told to. */
final class Session {
    static final int PRODUCER_ID_EXPIRATION_MS = 86_400_000;
    static final String REPLICATION = "replication-offset-checkpoint";

    final StillClock clock = new StillClock();
    final StillScheduler scheduler = new StillScheduler(clock);
    final List<File> dirs = new ArrayList<>();
    final LogManager manager;

    /** Asked: dirs, now, configs (by topic). */
    Session(JsonNode asked) throws IOException {
        clock.now = asked.get("now").asLong();
        asked.get("dirs").forEach(d -> dirs.add(new File(d.asText())));
        Map<String, Properties> configs = new TreeMap<>();
        asked.get("configs").properties().forEach(e -> configs.put(e.getKey(), properties(e.getValue())));
        manager = started(configs);
    }

    ObjectNode opened() throws Exception {
        takeHighWatermarks();
        return view();
    }

    /** Asked: now, ops: [{log, op, ...}, ...]. Answered: results, one for each. */
    ObjectNode turn(JsonNode asked) {
        scheduler.advance(asked.get("now").asLong());
        ObjectNode out = Histories.JSON.createObjectNode();
        ArrayNode results = out.putArray("results");
        for (JsonNode op : asked.get("ops")) results.add(LogOperation.run(this, op));
        return out;
    }

    static Properties properties(JsonNode config) {
        Properties p = new Properties();
        config.properties().forEach(e -> p.put(name(e.getKey(), e.getValue().asText()), e.getValue().asText()));
        return p;
    }

    /** Kafka refuses a segment.bytes below 1 MiB from users; its own tests say it this way. */
    private static String name(String name, String value) {
        return name.equals("segment.bytes") && Long.parseLong(value) < 1 << 20 ? "internal.segment.bytes" : name;
    }

    private LogManager started(Map<String, Properties> configs) throws IOException {
        ConfigRepository overrides = resource -> configs.getOrDefault(resource.name(), new Properties());
        Function5<CleanerConfig, List<File>, ConcurrentMap<TopicPartition, UnifiedLog>, LogDirFailureChannel, Time, LogCleaner> cleaner =
            (config, where, logs, failures, time) -> new LogCleaner(config, where, logs, failures, time) {
                @Override
                public void startup() { } // no threads: it keeps the cleaner's checkpoint in order
            };
        LogManager made = new LogManager(CollectionConverters.asScala(dirs).toSeq(), CollectionConverters.asScala(List.<File>of()).toSeq(),
            overrides, new LogConfig(Map.of()), new CleanerConfig(true), 1, 1_000, 60_000, 60_000, 300_000, 300_000,
            new ProducerStateManagerConfig(PRODUCER_ID_EXPIRATION_MS, false), 600_000, scheduler, new BrokerTopicStats(),
            new LogDirFailureChannel(10), clock, false, 30_000, cleaner);
        Function1<UnifiedLog, Object> isStray = log -> false;
        try {
            made.startup(CollectionConverters.asScala(configs.keySet()), isStray);
        } catch (RuntimeException e) {
            release(made);
            throw e;
        }
        return made;
    }

    /** As the replica manager does, which pauses the cleaning of what is being moved, too. */
    private void takeHighWatermarks() throws IOException {
        for (File dir : dirs) {
            Map<TopicPartition, Long> all = new OffsetCheckpointFile(new File(dir, REPLICATION), null).read();
            for (UnifiedLog log : logs()) {
                if (!log.parentDirFile().equals(dir)) continue;
                log.updateHighWatermark(all.getOrDefault(log.topicPartition(), 0L));
                if (log.isFuture()) manager.abortAndPauseCleaning(log.topicPartition());
            }
        }
    }

    void checkpoint() throws IOException {
        for (File dir : dirs) {
            Map<TopicPartition, Long> all = new HashMap<>();
            for (UnifiedLog log : logs()) if (log.parentDirFile().equals(dir)) all.put(log.topicPartition(), log.highWatermark());
            new OffsetCheckpointFile(new File(dir, REPLICATION), null).write(all);
        }
        manager.checkpointLogRecoveryOffsets();
        manager.checkpointLogStartOffsets();
    }

    Iterable<UnifiedLog> logs() {
        return CollectionConverters.asJava(manager.allLogs());
    }

    UnifiedLog log(TopicPartition partition, boolean future) {
        Option<UnifiedLog> found = manager.getLog(partition, future);
        return found.isEmpty() ? null : found.get();
    }

    /** Every log by its name, that of one that is being moved to come with "-future". */
    ObjectNode view() throws Exception {
        ObjectNode answer = Histories.JSON.createObjectNode(), out = answer.putObject("logs");
        for (UnifiedLog log : logs()) {
            String name = log.topicPartition() + (log.isFuture() ? "-future" : "");
            out.set(name, View.of(log, dirs.indexOf(log.parentDirFile())));
        }
        return answer;
    }

    void end(boolean clean) throws Exception {
        if (clean) {
            checkpoint();
            scheduler.forget();
            manager.shutdown(-1);
        } else release(manager);
    }

    /** The process is gone; the files are as the page cache has them. */
    private void release(LogManager gone) throws IOException {
        scheduler.forget();
        for (UnifiedLog log : CollectionConverters.asJava(gone.allLogs())) {
            log.closeHandlers();
            log.removeLogMetrics();
        }
        for (FileLock lock : CollectionConverters.asJava(gone.dirLocks())) lock.destroy();
    }
}
