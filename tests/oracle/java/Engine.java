import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordVersion;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.*;
import org.apache.kafka.storage.internals.utils.Throttler;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.attribute.FileTime;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Kafka's storage engine under a script: one operation a line in, what came of it a line out. README.md has the contract. */
class Engine {
    static final long FIRST_CLOCK_MS = 1_700_000_000_000L;
    private static final BrokerTopicStats STATS = new BrokerTopicStats();
    private static final Pattern OFFSET = Pattern.compile("(start|end|hw|lso|recovery|segment\\[(-?\\d+)])([+-]\\d+)?");
    private static final Pattern RELATIVE = Pattern.compile("(?:next|current)([+-]\\d+)?");

    /** An operation that needs an open log (or a closed one) met the other. */
    static final class ClosedException extends RuntimeException { }

    static final class OpenException extends RuntimeException { }

    /** The script asks for what there is not: no answer, the run ends. */
    static final class WrongScript extends RuntimeException {
        WrongScript(String problem) {
            super(problem);
        }
    }

    final File logDir;
    final StillClock clock = new StillClock(FIRST_CLOCK_MS);
    final EngineScheduler scheduler = new EngineScheduler(clock);
    final Map<String, String> config = new TreeMap<>();
    final ProducerStateManagerConfig producerConfig = new ProducerStateManagerConfig((int) PartitionLog.PRODUCER_ID_EXPIRATION_MS, false);
    private final Map<Long, VerificationGuard> guards = new HashMap<>();
    private TopicPartition tp = new TopicPartition("t", 0);
    private UnifiedLog log;
    private boolean follow; // the high watermark follows the log end, as with one replica
    protected byte[] built; // of the last append
    protected ObjectNode resolved; // what symbolic values of the line in hand stood for

    Engine(File logDir) throws IOException {
        this.logDir = logDir.getAbsoluteFile();
        Files.createDirectories(this.logDir.toPath());
    }

    // ---- one line ---------------------------------------------------------------------------------

    /** A line of the transcript. Throws only where the script itself is wrong. */
    ObjectNode run(JsonNode op, int number) throws Exception {
        String what = op.path("op").asText();
        ObjectNode out = Oracle.JSON.createObjectNode().put("n", number).put("op", what);
        resolved = Oracle.JSON.createObjectNode();
        built = null;
        JsonNode result = null;
        Throwable error = null;
        try {
            result = perform(what, op);
        } catch (WrongScript e) {
            throw e;
        } catch (Throwable e) { // an InternalError or a StackOverflowError is an answer too
            error = e;
        }
        if (!resolved.isEmpty()) out.set("resolved", resolved);
        if (error == null) out.set("result", result);
        else describe(error, out);
        return withState(out, op);
    }

    ObjectNode withState(ObjectNode out, JsonNode op) throws Exception {
        out.set("state", log == null ? null : EngineState.of(log));
        return out;
    }

    private static void describe(Throwable error, ObjectNode out) {
        out.put("error", error.getClass().getSimpleName());
        if (error instanceof RecordValidationException r) {
            out.put("cause", r.invalidException().getClass().getSimpleName());
            ArrayNode records = out.putArray("records");
            r.recordErrors().forEach(e -> records.add(e.batchIndex));
        } else if (error.getCause() != null) out.put("cause", error.getCause().getClass().getSimpleName());
        if (System.getenv("ORACLE_TRACE") != null) error.printStackTrace();
    }

    JsonNode perform(String what, JsonNode op) throws Exception {
        return switch (what) {
            case "partition", "config", "broker", "clock", "settings" -> configure(what, op);
            case "open", "close", "crash", "checkpoint", "damage", "hide", "mtime", "files" -> lifecycle(what, op);
            case "append", "end_txn" -> append(what.equals("append") ? op : marker(op));
            case "verify_txn" -> verify(op);
            case "read", "offset_for_timestamp", "offset_metadata", "offset_snapshot", "aborted_txns",
                 "epoch_end_offset", "epoch_for_offset", "late_txn" -> new EngineQueries(this, log(op), op).answer(what);
            default -> change(what, op);
        };
    }

    private JsonNode configure(String what, JsonNode op) {
        switch (what) {
            case "partition" -> tp = new TopicPartition(op.get("topic").asText(), op.path("partition").asInt(0));
            case "config" -> reconfigure(op);
            case "broker" -> {
                if (op.has("producer.id.expiration.ms")) producerConfig.setProducerIdExpirationMs(op.get("producer.id.expiration.ms").asInt());
                if (op.has("transaction.partition.verification.enable"))
                    producerConfig.setTransactionVerificationEnabled(op.get("transaction.partition.verification.enable").asBoolean());
            }
            case "clock" -> {
                clock.now = op.has("ms") ? op.get("ms").asLong() : clock.now + op.get("advance").asLong();
                scheduler.tick();
            }
            default -> follow = op.path("follow_high_watermark").asBoolean(follow);
        }
        return null;
    }

    private void reconfigure(JsonNode op) {
        Map<String, String> next = new TreeMap<>(config);
        op.properties().forEach(e -> {
            if (!Set.of("op", "log").contains(e.getKey())) next.put(e.getKey(), e.getValue().asText());
        });
        LogConfig checked = logConfig(next);
        config.clear();
        config.putAll(next);
        if (log != null) log.updateConfig(checked);
    }

    /** Kafka's defaults but for what the script names; Kafka takes a small segment.bytes only under another name. */
    static LogConfig logConfig(Map<String, String> config) {
        Properties p = new Properties();
        config.forEach((k, v) -> p.put(k.equals("segment.bytes") && Long.parseLong(v) < 1 << 20 ? "internal.segment.bytes" : k, v));
        for (Object name : p.keySet())
            if (!LogConfig.configNames().contains((String) name) && !((String) name).startsWith("internal."))
                throw new WrongScript("no topic configuration is named " + name);
        return new LogConfig(p);
    }

    // ---- symbolic values --------------------------------------------------------------------------

    /** The log that a line is about. */
    UnifiedLog log(JsonNode op) {
        if (log == null) throw new ClosedException();
        return log;
    }

    long offset(JsonNode op, String name) {
        return offset(log(op), op.get(name), name);
    }

    private long offset(UnifiedLog log, JsonNode value, String name) {
        if (value.isNumber()) return value.asLong();
        Matcher m = OFFSET.matcher(value.asText());
        if (!m.matches()) throw new WrongScript("no offset: " + value);
        String base = m.group(1);
        long at = switch (base) {
            case "start" -> log.logStartOffset();
            case "end" -> log.logEndOffset();
            case "hw" -> log.highWatermark();
            case "lso" -> log.lastStableOffset();
            case "recovery" -> log.recoveryPoint();
            default -> segment(log, Integer.parseInt(m.group(2))).baseOffset();
        };
        at += m.group(3) == null ? 0 : Long.parseLong(m.group(3));
        resolved.put(name, at);
        return at;
    }

    private static LogSegment segment(UnifiedLog log, int n) {
        List<LogSegment> segments = log.logSegments();
        return segments.get(Math.floorMod(n, segments.size()));
    }

    private EngineBatches.Resolver resolver(UnifiedLog log) {
        return new EngineBatches.Resolver(value -> offset(log, value, "base_offset"), b -> relative(log, b, "epoch"), b -> relative(log, b, "seq"));
    }

    /** `epoch`: "current+N" counts from the producer's, at least 0; `seq`: "next+N" from the number that Kafka expects, round 2^31. */
    private long relative(UnifiedLog log, JsonNode b, String name) {
        JsonNode value = b.path(name);
        if (value.isMissingNode()) return -1;
        if (value.isNumber()) return value.asLong();
        Matcher m = RELATIVE.matcher(value.asText());
        if (!m.matches()) throw new WrongScript("no " + name + ": " + value);
        ProducerStateEntry p = log.producerStateManager().activeProducers().get(b.path("pid").asLong());
        long at = name.equals("epoch") ? (p == null ? 0 : p.producerEpoch()) : nextSequence(p);
        at += m.group(1) == null ? 0 : Long.parseLong(m.group(1));
        at = name.equals("epoch") ? Math.min(Short.MAX_VALUE, Math.max(0, at)) : Math.floorMod(at, 1L << 31);
        resolved.put(name, at);
        return at;
    }

    private static long nextSequence(ProducerStateEntry p) {
        int last = p == null ? -1 : p.batchMetadata().stream().reduce((a, b) -> b).map(BatchMetadata::lastSeq).orElse(-1);
        return last == Integer.MAX_VALUE ? 0 : last + 1L;
    }

    // ---- append -----------------------------------------------------------------------------------

    private static ObjectNode marker(JsonNode op) {
        ObjectNode out = op.deepCopy();
        if (!out.has("hex")) out.put("marker", op.get("commit").asBoolean() ? "commit" : "abort");
        if (!out.has("as") && !out.has("origin")) out.put("origin", "coordinator");
        if (!out.has("transaction_version")) out.put("transaction_version", 1);
        return out;
    }

    private JsonNode append(JsonNode op) throws Exception {
        UnifiedLog log = log(op);
        built = described(log, op);
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(built.clone()));
        int epoch = op.path("leader_epoch").asInt(0);
        LogAppendInfo info;
        byte magic = (byte) op.path("to_magic").asInt(2);
        if (op.path("as").asText("leader").equals("follower")) info = log.appendAsFollower(records, epoch);
        else if (magic < 2) info = log.appendAsLeaderWithRecordVersion(records, epoch, RecordVersion.lookup(magic));
        else info = log.appendAsLeader(records, epoch, origin(op), RequestLocal.noCaching(), guard(op),
                (short) op.path("transaction_version").asInt(-1));
        if (follow) log.maybeIncrementHighWatermark(log.logEndOffsetMetadata());
        return appended(info);
    }

    /** What no client could build is no question to the log. */
    private byte[] described(UnifiedLog log, JsonNode op) {
        try {
            return new EngineBatches(op, clock.now, resolver(log)).bytes();
        } catch (RuntimeException e) {
            throw new WrongScript("no batch: " + e);
        }
    }

    private VerificationGuard guard(JsonNode op) {
        if (!op.path("guard").asBoolean(false)) return VerificationGuard.SENTINEL;
        return guards.getOrDefault(op.path("pid").asLong(), VerificationGuard.SENTINEL);
    }

    private static AppendOrigin origin(JsonNode op) {
        return switch (op.path("origin").asText("client")) {
            case "client" -> AppendOrigin.CLIENT;
            case "coordinator" -> AppendOrigin.COORDINATOR;
            case "raft" -> AppendOrigin.RAFT_LEADER;
            default -> throw new WrongScript("no origin: " + op.get("origin"));
        };
    }

    private static ObjectNode appended(LogAppendInfo info) {
        return Oracle.JSON.createObjectNode().put("first_offset", info.firstOffset()).put("last_offset", info.lastOffset())
            .put("max_timestamp", info.maxTimestamp()).put("log_append_time", info.logAppendTime())
            .put("log_start_offset", info.logStartOffset()).put("last_leader_epoch", info.lastLeaderEpoch().orElse(null))
            .put("source_compression", info.sourceCompression().name).put("valid_bytes", info.validBytes())
            .put("records_converted", info.recordValidationStats().numRecordsConverted());
    }

    private JsonNode verify(JsonNode op) {
        UnifiedLog log = log(op);
        VerificationGuard guard = log.maybeStartTransactionVerification(op.get("pid").asLong(), (int) relative(log, op, "seq"),
            (short) relative(log, op, "epoch"), op.path("supports_epoch_bump").asBoolean(false));
        guards.put(op.get("pid").asLong(), guard);
        return Oracle.JSON.createObjectNode().put("needed", guard != VerificationGuard.SENTINEL);
    }

    // ---- changes ----------------------------------------------------------------------------------

    JsonNode change(String what, JsonNode op) throws Exception {
        UnifiedLog log = log(op);
        ObjectNode out = Oracle.JSON.createObjectNode();
        switch (what) {
            case "roll" -> out.put("base_offset", log.roll().baseOffset());
            case "flush" -> {
                if (op.has("offset")) log.flushUptoOffsetExclusive(offset(op, "offset"));
                else log.flush(op.path("force").asBoolean(false));
            }
            case "truncate_to" -> out.put("truncated", log.truncateTo(offset(op, "offset")));
            case "truncate_fully" -> log.truncateFullyAndStartAt(offset(op, "offset"),
                op.has("log_start_offset") ? Optional.of(offset(op, "log_start_offset")) : Optional.empty());
            case "delete_records" -> out.put("incremented",
                log.maybeIncrementLogStartOffset(offset(op, "offset"), LogStartOffsetIncrementReason.ClientRecordDeletion));
            case "high_watermark" -> out.put("changed", highWatermark(log, op));
            case "retention" -> out.put("deleted", log.deleteOldSegments());
            case "assign_epoch" -> log.assignEpochStartOffset(op.get("epoch").asInt(), offset(op, "offset"));
            case "snapshot" -> log.takeProducerSnapshot();
            case "expire_producers" -> log.removeExpiredProducers(clock.now);
            case "load_producer_state" -> log.loadProducerState(offset(op, "offset"));
            case "clean" -> out = clean(log, op);
            default -> throw new WrongScript("unknown op " + what);
        }
        return out.isEmpty() ? null : out;
    }

    /** As a leader that starts (`set`), a leader (`increment`) or a follower (`follow`); what it was before, or is now. */
    private Long highWatermark(UnifiedLog log, JsonNode op) throws Exception {
        long to = offset(op, "offset");
        return switch (op.path("how").asText("set")) {
            case "set" -> log.updateHighWatermark(to);
            case "increment" -> log.maybeIncrementHighWatermark(log.maybeConvertToOffsetMetadata(to)).map(m -> m.messageOffset).orElse(null);
            case "follow" -> log.maybeUpdateHighWatermark(to).orElse(null);
            default -> throw new WrongScript("no way to set a high watermark: " + op.get("how"));
        };
    }

    private ObjectNode clean(UnifiedLog log, JsonNode op) throws Exception {
        TopicPartition partition = log.topicPartition();
        LogCleanerManager manager = new LogCleanerManager(List.of(log.parentDirFile()),
            new ConcurrentHashMap<>(Map.of(partition, log)), new LogDirFailureChannel(10));
        Optional<LogToClean> target = op.has("first_dirty")
            ? Optional.of(new LogToClean(log, offset(op, "first_dirty"), offset(op, "uncleanable"), false))
            : manager.grabFilthiestCompactedLog(clock, new PreCleanStats());
        if (target.isEmpty()) return Oracle.JSON.createObjectNode().put("cleaned", false);
        int slots = op.path("slots").asInt(10_000);
        Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(slots * 24), 64 * 1024, Math.max(1 << 20, log.config().maxMessageSize()), 1.0,
            new Throttler(Double.MAX_VALUE, 300, "t", "u", Time.SYSTEM), clock, t -> { });
        Map.Entry<Long, CleanerStats> done = cleaner.doClean(target.get(), clock.now);
        PartitionLog.writeCheckpoint(log.parentDirFile(), "cleaner-offset-checkpoint", partition, done.getKey());
        CleanerStats s = done.getValue();
        return Oracle.JSON.createObjectNode().put("cleaned", true).put("first_dirty_offset", target.get().firstDirtyOffset())
            .put("first_uncleanable_offset", target.get().firstUncleanableOffset()).put("end_offset", done.getKey())
            .put("messages_read", s.messagesRead()).put("messages_written", s.messagesWritten())
            .put("bytes_read", s.bytesRead()).put("bytes_written", s.bytesWritten())
            .put("invalid_messages_read", s.invalidMessagesRead());
    }

    // ---- the log's life ---------------------------------------------------------------------------

    private JsonNode lifecycle(String what, JsonNode op) throws Exception {
        switch (what) {
            case "files" -> {
                return EngineState.files(logDir);
            }
            case "open" -> open(op);
            case "checkpoint" -> checkpoint(log(op));
            case "close" -> close(log(op));
            case "crash" -> crash();
            case "hide" -> Files.move(log(op).dir().toPath(), hidden(log(op)).toPath());
            case "mtime" -> {
                File file = segment(log(op), op.get("segment").asInt()).log().file();
                Files.setLastModifiedTime(file.toPath(), FileTime.fromMillis(op.get("ms").asLong()));
            }
            default -> {
                if (log != null) throw new OpenException();
                return EngineDamage.apply(new File(logDir, tp.topic() + "-" + tp.partition()), logDir, op);
            }
        }
        return null;
    }

    /** As a starting broker: what the checkpoints and the marker say, unless the line says otherwise. */
    private void open(JsonNode op) throws Exception {
        if (log != null) throw new OpenException();
        File marker = new File(logDir, ".kafka_cleanshutdown");
        boolean clean = op.has("clean") ? op.get("clean").asBoolean() : marker.exists();
        Files.deleteIfExists(marker.toPath());
        UnifiedLog opened = UnifiedLog.create(new File(logDir, tp.topic() + "-" + tp.partition()), logConfig(config),
            checkpointed(op, "log_start_offset", "log-start-offset-checkpoint"),
            checkpointed(op, "recovery_point", "recovery-point-offset-checkpoint"),
            scheduler, STATS, clock, 300_000, producerConfig, 600_000, new LogDirFailureChannel(10), clean, Optional.empty());
        log = opened;
        log.updateHighWatermark(checkpointed(op, "high_watermark", "replication-offset-checkpoint"));
    }

    private long checkpointed(JsonNode op, String name, String file) throws IOException {
        return op.has(name) ? op.get(name).asLong() : PartitionLog.checkpoint(logDir, file).getOrDefault(tp, 0L);
    }

    /** What a running broker writes from time to time. */
    private void checkpoint(UnifiedLog log) throws IOException {
        PartitionLog.writeCheckpoint(logDir, "recovery-point-offset-checkpoint", tp, log.recoveryPoint());
        PartitionLog.writeCheckpoint(logDir, "replication-offset-checkpoint", tp, log.highWatermark());
        boolean told = log.logStartOffset() > log.logSegments().get(0).baseOffset();
        new OffsetCheckpointFile(new File(logDir, "log-start-offset-checkpoint"), null).write(told ? Map.of(tp, log.logStartOffset()) : Map.of());
    }

    /** As a broker that shuts down: what was scheduled for later is not done any more. */
    private void close(UnifiedLog closing) throws IOException {
        scheduler.forget();
        closing.flush(true);
        closing.close();
        checkpoint(closing);
        closing.removeLogMetrics();
        Files.writeString(new File(logDir, ".kafka_cleanshutdown").toPath(), "{\"version\":0,\"brokerEpoch\":-1}");
        log = null;
    }

    /** The process is gone; the files are as the page cache has them. */
    void crash() throws IOException {
        if (log == null) throw new ClosedException();
        scheduler.forget();
        UnifiedLog gone = log;
        log = null;
        gone.closeHandlers();
        gone.removeLogMetrics();
        if (hidden(gone).exists()) {
            if (gone.dir().exists()) Trees.delete(gone.dir().toPath());
            Files.move(hidden(gone).toPath(), gone.dir().toPath());
        }
    }

    /** Where the directory is while the log does not find it. */
    private File hidden(UnifiedLog log) {
        return new File(logDir, log.dir().getName() + ".hidden");
    }

    /** After the last line: nothing is written any more. */
    void end() throws IOException {
        if (log != null) crash();
    }
}
