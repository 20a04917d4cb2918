import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogCleaningAbortedException;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.utils.Throttler;

import java.io.File;
import java.io.IOException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** Kafka's choice of logs and ranges, and Kafka's cleaner. */
final class Cleaning {
    private static final String CHECKPOINT = "cleaner-offset-checkpoint";
    private static final int BYTES_PER_KEY = 24;
    private static final int DEFAULT_MAP_BYTES = 128 * 1024 * 1024;
    private static final int SMALL_LOG_BYTES = 1024 * 1024;
    private static final int SMALL_MAP_BYTES = 16 * 1024 * 1024;

    private Cleaning() { }

    static ObjectNode describe(LogToClean l) {
        return Oracle.JSON.createObjectNode().put("topic", l.topicPartition().topic()).put("partition", l.topicPartition().partition())
            .put("first_dirty_offset", l.firstDirtyOffset()).put("first_uncleanable_offset", l.firstUncleanableOffset())
            .put("clean_bytes", l.cleanBytes()).put("cleanable_bytes", l.cleanableBytes()).put("cleanable_ratio", l.cleanableRatio())
            .put("total_bytes", l.totalBytes());
    }

    /** oracle select LOG_DIR --now MS [--config K=V]…: the order in which Kafka would take the logs. */
    static void select(Oracle.Arguments a) throws Exception {
        File logDir = new File(a.positional.get(0));
        StillClock clock = new StillClock(a.number("now", System.currentTimeMillis()));
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>();
        for (File dir : logDir.listFiles(File::isDirectory)) {
            if (!dir.getName().matches(".+-[0-9]+")) continue;
            TopicPartition tp = UnifiedLog.parseTopicPartitionName(dir);
            logs.put(tp, PartitionLog.open(logDir, tp, PartitionLog.logConfig(a.config), clock, true));
        }
        LogCleanerManager manager = new LogCleanerManager(List.of(logDir), logs, new LogDirFailureChannel(10));
        Optional<LogToClean> next;
        while ((next = manager.grabFilthiestCompactedLog(clock, new PreCleanStats())).isPresent()) System.out.println(describe(next.get()));
        for (UnifiedLog log : logs.values()) PartitionLog.close(logDir, log);
    }

    /** oracle clean LOG_DIR TOPIC-PARTITION --now MS [--config K=V]… [--slots N] [--first-dirty N] [--uncleanable N] */
    static void clean(Oracle.Arguments a) throws Exception {
        File logDir = new File(a.positional.get(0));
        TopicPartition tp = UnifiedLog.parseTopicPartitionName(new File(a.positional.get(1)).getAbsoluteFile());
        StillClock clock = new StillClock(a.number("now", System.currentTimeMillis()));
        UnifiedLog log = PartitionLog.open(logDir, tp, PartitionLog.logConfig(a.config), clock, true);
        ObjectNode result = cleanOpen(logDir, log, clock, a.number("first-dirty", -1), a.number("uncleanable", -1), (int) a.number("slots", -1));
        PartitionLog.close(logDir, log);
        System.out.println(result);
    }

    /** A broker's cleaner thread with its default buffers; with slots > 0 its map takes exactly so many keys. */
    private static Cleaner cleaner(LogToClean target, Time time, int slots) throws Exception {
        boolean exact = slots > 0;
        // zeroing the default map takes longer than cleaning a small log, and no small log fills a smaller one
        int memory = exact ? slots * BYTES_PER_KEY : target.totalBytes() < SMALL_LOG_BYTES ? SMALL_MAP_BYTES : DEFAULT_MAP_BYTES;
        int maxIoBuffer = Math.max(32 * 1024 * 1024, target.log().config().maxMessageSize());
        return new Cleaner(0, new SkimpyOffsetMap(memory), 512 * 1024, maxIoBuffer, exact ? 1.0 : 0.9,
            new Throttler(Double.MAX_VALUE, 300, "t", "u", Time.SYSTEM), time, tp -> { });
    }

    /** One cleaning of an open log: the range as given, or as Kafka's cleaner manager picks it; the checkpoint is written. */
    static ObjectNode cleanOpen(File logDir, UnifiedLog log, StillClock clock, long firstDirty, long uncleanable, int slots) throws Exception {
        TopicPartition tp = log.topicPartition();
        ConcurrentMap<TopicPartition, UnifiedLog> logs = new ConcurrentHashMap<>(Map.of(tp, log));
        LogCleanerManager manager = new LogCleanerManager(List.of(logDir), logs, new LogDirFailureChannel(10));
        LogToClean target;
        if (firstDirty >= 0 && uncleanable >= 0) target = new LogToClean(log, firstDirty, uncleanable, false);
        else {
            Map<TopicPartition, Long> entries = PartitionLog.checkpoint(logDir, CHECKPOINT);
            Optional<LogToClean> grabbed = manager.grabFilthiestCompactedLog(clock, new PreCleanStats());
            // where it repairs this log's entry it drops those of all logs that it was not given
            entries.putAll(PartitionLog.checkpoint(logDir, CHECKPOINT));
            if (!entries.isEmpty()) new OffsetCheckpointFile(new File(logDir, CHECKPOINT), null).write(entries);
            if (grabbed.isEmpty()) return Oracle.JSON.createObjectNode().put("cleaned", false);
            target = grabbed.get();
        }
        ObjectNode out = describe(target);
        ObjectNode producers = out.putObject("active_producers");
        log.lastRecordsOfActiveProducers().forEach((id, last) -> {
            ObjectNode producer = producers.putObject(id.toString()).put("epoch", last.producerEpoch());
            producer.put("last_data_offset", last.lastDataOffset().isPresent() ? last.lastDataOffset().getAsLong() : null);
        });
        Map.Entry<Long, CleanerStats> done = cleaner(target, clock, slots).doClean(target, clock.now);
        PartitionLog.writeCheckpoint(logDir, CHECKPOINT, tp, done.getKey());
        CleanerStats s = done.getValue();
        return out.put("cleaned", true).put("end_offset", done.getKey()).put("messages_read", s.messagesRead()).put("messages_written", s.messagesWritten())
            .put("bytes_read", s.bytesRead()).put("bytes_written", s.bytesWritten()).put("map_messages_read", s.mapMessagesRead())
            .put("invalid_messages_read", s.invalidMessagesRead());
    }

    /** oracle recover LOG_DIR TOPIC-PARTITION [--clean true|false]: opens the partition as a starting broker does, and closes it. */
    static void recover(Oracle.Arguments a) throws Exception {
        File logDir = new File(a.positional.get(0));
        TopicPartition tp = UnifiedLog.parseTopicPartitionName(new File(a.positional.get(1)).getAbsoluteFile());
        UnifiedLog log = PartitionLog.open(logDir, tp, PartitionLog.logConfig(a.config), new StillClock(a.number("now", System.currentTimeMillis())),
            Boolean.parseBoolean(a.options.getOrDefault("clean", "false")));
        ObjectNode out = Oracle.JSON.createObjectNode().put("log_start_offset", log.logStartOffset()).put("log_end_offset", log.logEndOffset())
            .put("last_stable_offset", log.lastStableOffset()).put("segments", log.logSegments().size());
        PartitionLog.close(logDir, log);
        System.out.println(out);
    }

    /** oracle retain LOG_DIR TOPIC-PARTITION --now MS [--config K=V]…: retention as Kafka's cleaner lets it pass after a round. */
    static void retain(Oracle.Arguments a) throws Exception {
        File logDir = new File(a.positional.get(0));
        TopicPartition tp = UnifiedLog.parseTopicPartitionName(new File(a.positional.get(1)).getAbsoluteFile());
        StillClock clock = new StillClock(a.number("now", System.currentTimeMillis()));
        UnifiedLog log = PartitionLog.open(logDir, tp, PartitionLog.logConfig(a.config), clock, true);
        int deleted = log.deleteOldSegments();
        ObjectNode out = Oracle.JSON.createObjectNode().put("deleted_segments", deleted).put("log_start_offset", log.logStartOffset())
            .put("log_end_offset", log.logEndOffset()).put("segments", log.logSegments().size());
        PartitionLog.close(logDir, log);
        System.out.println(out);
    }

    static void cleanEach(File logDir, Map<TopicPartition, Map<String, String>> partitions, long now, int slots, ObjectNode results) throws Exception {
        for (Map.Entry<TopicPartition, Map<String, String>> e : partitions.entrySet()) {
            UnifiedLog log = PartitionLog.open(logDir, e.getKey(), PartitionLog.logConfig(e.getValue()), new StillClock(now), true);
            try {
                results.set(e.getKey().toString(), cleanOpen(logDir, log, new StillClock(now), -1, -1, slots));
                log.deleteOldSegments(); // as the cleaner thread does after each round
                PartitionLog.close(logDir, log);
            } catch (LogCleaningAbortedException x) { // a segment was split; the log is sound
                PartitionLog.close(logDir, log);
                results.putObject(e.getKey().toString()).put("clean_error", x.toString());
            } catch (Exception x) {
                results.putObject(e.getKey().toString()).put("clean_error", x.toString());
            }
        }
    }

    /** oracle clean-all LOG_DIR TOPIC_CONFIGS --now MS [--slots N]: one cleaning of every partition whose topic the file names. */
    static void cleanAll(Oracle.Arguments a) throws Exception {
        JsonNode configs = Oracle.JSON.readTree(new File(a.positional.get(1)));
        System.out.println(cleanAll(new File(a.positional.get(0)), configs, a));
    }

    /** oracle clean-many ROOT TOPIC_CONFIGS --now MS [--slots N] [--only PREFIX]: clean-all of each log directory in ROOT (whose name begins so), a line for each. */
    static void cleanMany(Oracle.Arguments a) throws Exception {
        JsonNode configs = Oracle.JSON.readTree(new File(a.positional.get(1)));
        for (File logDir : directories(new File(a.positional.get(0))))
            if (logDir.getName().startsWith(a.options.getOrDefault("only", "")))
                System.out.println(Oracle.JSON.createObjectNode().put("log_dir", logDir.getName()).set("results", cleanAll(logDir, configs, a)));
    }

    private static ObjectNode cleanAll(File logDir, JsonNode configs, Oracle.Arguments a) throws Exception {
        ObjectNode results = Oracle.JSON.createObjectNode();
        cleanEach(logDir, partitions(logDir, configs), a.number("now", System.currentTimeMillis()), (int) a.number("slots", -1), results);
        return results;
    }

    /** oracle recover-all ROOT TOPIC_CONFIGS --now MS: starts a broker's logs in each log directory in ROOT, after a clean shutdown where its marker says so, and closes them; a line for each. */
    static void recoverAll(Oracle.Arguments a) throws Exception {
        JsonNode configs = Oracle.JSON.readTree(new File(a.positional.get(1)));
        StillClock clock = new StillClock(a.number("now", System.currentTimeMillis()));
        for (File logDir : directories(new File(a.positional.get(0)))) {
            ObjectNode out = Oracle.JSON.createObjectNode().put("log_dir", logDir.getName());
            ObjectNode results = out.putObject("results");
            boolean clean = new File(logDir, ".kafka_cleanshutdown").exists();
            for (Map.Entry<TopicPartition, Map<String, String>> e : partitions(logDir, configs).entrySet()) {
                ObjectNode result = results.putObject(e.getKey().toString());
                try {
                    UnifiedLog log = PartitionLog.open(logDir, e.getKey(), PartitionLog.logConfig(e.getValue()), clock, clean);
                    result.put("log_start_offset", log.logStartOffset()).put("log_end_offset", log.logEndOffset()).put("last_stable_offset", log.lastStableOffset());
                    PartitionLog.close(logDir, log);
                } catch (Exception x) {
                    result.put("error", x.toString());
                }
            }
            System.out.println(out);
        }
    }

    private static File[] directories(File parent) {
        File[] found = parent.listFiles(File::isDirectory);
        Arrays.sort(found);
        return found;
    }

    /** The partitions of a log directory whose topic the file of configurations names. */
    private static Map<TopicPartition, Map<String, String>> partitions(File logDir, JsonNode configs) throws IOException {
        Map<TopicPartition, Map<String, String>> partitions = new LinkedHashMap<>();
        for (File dir : directories(logDir)) {
            if (!dir.getName().matches(".+-[0-9]+")) continue;
            TopicPartition tp = UnifiedLog.parseTopicPartitionName(dir);
            if (!configs.has(tp.topic())) continue;
            Map<String, String> config = new TreeMap<>();
            configs.get(tp.topic()).properties().forEach(e -> config.put(e.getKey(), e.getValue().asText()));
            partitions.put(tp, config);
        }
        return partitions;
    }
}
