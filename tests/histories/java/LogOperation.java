import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.LogAppendInfo;
import org.apache.kafka.storage.internals.log.LogCleanerManager;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.LogToClean;
import org.apache.kafka.storage.internals.log.PreCleanStats;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;
import org.apache.kafka.storage.internals.utils.Throttler;

import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/** One thing that a broker does to one log. What does not apply (a move that was never begun) does nothing, and says so. */
final class LogOperation {
    private static final String CLEANER = "cleaner-offset-checkpoint";
    private static final int MAP_SLOTS = 2_000;

    private final Session session;
    private final JsonNode op;
    private final TopicPartition partition;
    private final UnifiedLog log; // null: there is none
    private final UnifiedLog future;
    private final ObjectNode out = Histories.JSON.createObjectNode();

    private LogOperation(Session session, JsonNode op) {
        this.session = session;
        this.op = op;
        String name = op.get("log").asText();
        int dash = name.lastIndexOf('-');
        partition = new TopicPartition(name.substring(0, dash), Integer.parseInt(name.substring(dash + 1)));
        log = session.log(partition, false);
        future = session.log(partition, true);
    }

    static ObjectNode run(Session session, JsonNode op) {
        LogOperation operation = new LogOperation(session, op);
        try {
            operation.perform(op.get("op").asText());
        } catch (Throwable e) {
            if (System.getenv("HISTORIES_TRACE") != null) e.printStackTrace();
            operation.out.put("error", Histories.told(e));
        }
        return operation.out;
    }

    private void perform(String what) throws Exception {
        if (what.equals("create")) create();
        else if (log == null) out.put("none", true);
        else switch (what) {
            case "append" -> append(built());
            case "end_txn" -> endTxn();
            case "roll" -> log.roll();
            case "high_watermark" -> log.updateHighWatermark(op.get("offset").asLong());
            case "clean" -> clean();
            case "retain" -> {
                if (future == null) out.put("deleted", log.deleteOldSegments());
            }
            case "delete_records" ->
                log.maybeIncrementLogStartOffset(op.get("offset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
            case "truncate" -> truncate();
            case "checkpoint" -> session.checkpoint();
            case "config" -> session.manager.updateTopicConfig(partition.topic(), Session.properties(op.get("config")), false, false);
            case "delete" -> {
                if (future != null) session.manager.asyncDelete(partition, true, true, false);
                session.manager.asyncDelete(partition, false, true, false);
            }
            default -> move(what);
        }
        UnifiedLog now = session.log(partition, false);
        if (now != null) out.put("start", now.logStartOffset()).put("end", now.logEndOffset()).put("high_watermark", now.highWatermark());
    }

    private void create() {
        if (log != null) return;
        Optional<Uuid> id = op.hasNonNull("topic_id") ? Optional.of(Uuid.fromString(op.get("topic_id").asText())) : Optional.empty();
        session.manager.maybeUpdatePreferredLogDir(partition, session.dirs.get(op.get("dir").asInt()).getPath());
        session.manager.getOrCreateLog(partition, true, false, id, Option.empty());
    }

    // ---- appends ----------------------------------------------------------------------------------

    private MemoryRecords built() {
        List<SimpleRecord> records = new ArrayList<>();
        int size = 1024;
        for (JsonNode r : op.get("records")) {
            byte[] key = bytes(r.get(0)), value = bytes(r.get(1));
            records.add(new SimpleRecord(r.get(2).asLong(), key, value));
            size += 256 + key.length + (value == null ? 0 : value.length);
        }
        byte magic = (byte) op.path("magic").asInt(2);
        MemoryRecordsBuilder b = new MemoryRecordsBuilder(ByteBuffer.allocate(size), magic,
            Compression.of(CompressionType.forName(op.path("codec").asText("none"))).build(), TimestampType.CREATE_TIME, 0L, RecordBatch.NO_TIMESTAMP,
            op.path("pid").asLong(-1), (short) op.path("epoch").asInt(-1), op.path("seq").asInt(-1), op.path("txn").asBoolean(false), false, -1, size);
        records.forEach(b::append);
        return b.build();
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
    }

    private void append(MemoryRecords records) throws IOException {
        LogAppendInfo info = log.appendAsLeader(records, op.get("leader_epoch").asInt());
        out.put("first", info.firstOffset()).put("last", info.lastOffset());
        touched(log);
    }

    private void endTxn() throws IOException {
        ControlRecordType type = op.get("commit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        MemoryRecords marker = MemoryRecords.withEndTransactionMarker(0L, session.clock.now, op.get("leader_epoch").asInt(), op.get("pid").asLong(),
            (short) op.get("epoch").asInt(), new EndTransactionMarker(type, 0));
        LogAppendInfo info = log.appendAsLeader(marker, op.get("leader_epoch").asInt(), AppendOrigin.COORDINATOR, RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, (short) 1);
        out.put("first", info.firstOffset()).put("last", info.lastOffset());
        touched(log);
    }

    /** The clock is not the machine's. */
    private void touched(UnifiedLog written) throws IOException {
        List<LogSegment> segments = written.logSegments();
        File active = segments.get(segments.size() - 1).log().file();
        if (!active.setLastModified(session.clock.now)) throw new IOException("cannot set the time of " + active);
    }

    // ---- cleaning, truncation ---------------------------------------------------------------------

    /** What a thread of the cleaner does to this log, retention included; nothing while it is being moved. */
    private void clean() throws Exception {
        if (future != null) return;
        Map<File, Map<TopicPartition, Long>> before = new HashMap<>();
        for (File dir : session.dirs) before.put(dir, new OffsetCheckpointFile(new File(dir, CLEANER), null).read());
        LogCleanerManager cleaners = new LogCleanerManager(session.dirs, new ConcurrentHashMap<>(Map.of(partition, log)), new LogDirFailureChannel(10));
        Optional<LogToClean> target = cleaners.grabFilthiestCompactedLog(session.clock, new PreCleanStats());
        restoreOthers(before);
        out.put("cleaned", target.isPresent());
        if (target.isPresent()) {
            Cleaner cleaner = new Cleaner(0, new SkimpyOffsetMap(MAP_SLOTS * 24), 64 * 1024, 1 << 20, 0.9,
                new Throttler(Double.MAX_VALUE, 300, "t", "u", Time.SYSTEM), session.clock, t -> { });
            Map.Entry<Long, CleanerStats> done = cleaner.doClean(target.get(), session.clock.now);
            session.manager.cleaner().cleanerManager().updateCheckpoints(log.parentDirFile(), Optional.of(Map.entry(partition, done.getKey())), Optional.empty());
            out.put("from", target.get().firstDirtyOffset()).put("to", done.getKey());
        }
        log.deleteOldSegments();
    }

    /** Where it repairs this log's entry, it drops those of all logs that it was not given. */
    private void restoreOthers(Map<File, Map<TopicPartition, Long>> before) throws IOException {
        for (File dir : session.dirs) {
            OffsetCheckpointFile file = new OffsetCheckpointFile(new File(dir, CLEANER), null);
            Map<TopicPartition, Long> now = new HashMap<>(file.read()), then = before.get(dir);
            then.remove(partition);
            if (now.entrySet().containsAll(then.entrySet())) continue;
            now.putAll(then);
            file.write(now);
        }
    }

    /** A follower's; the copy in the other directory follows. */
    private void truncate() {
        long to = op.get("offset").asLong();
        session.manager.truncateTo(CollectionConverters.asScala(new HashMap<>(Map.of(partition, (Object) to))), false);
        if (future != null && future.logEndOffset() > to)
            session.manager.truncateTo(CollectionConverters.asScala(new HashMap<>(Map.of(partition, (Object) to))), true);
    }

    // ---- moves between directories ----------------------------------------------------------------

    private void move(String what) throws Exception {
        switch (what) {
            case "start_move" -> {
                int other = 1 - session.dirs.indexOf(log.parentDirFile());
                if (future != null) return;
                session.manager.abortAndPauseCleaning(partition);
                session.manager.maybeUpdatePreferredLogDir(partition, session.dirs.get(other).getPath());
                session.manager.getOrCreateLog(partition, true, true, log.topicId(), Option.empty());
            }
            case "copy" -> {
                if (future != null) copy(op.get("offset").asLong());
            }
            case "finish_move" -> {
                if (future == null) return;
                copy(Long.MAX_VALUE);
                out.put("moved", future.logEndOffset() == log.logEndOffset());
                if (future.logEndOffset() == log.logEndOffset()) session.manager.replaceCurrentWithFutureLog(partition);
            }
            case "cancel_move" -> {
                if (future == null) return;
                session.manager.asyncDelete(partition, true, true, false);
                session.manager.resumeCleaning(partition);
            }
            default -> throw new IllegalArgumentException("nobody knows " + what);
        }
    }

    /** As the thread that moves replicas: whole batches, up to the one that holds the offset before `to`. */
    private void copy(long to) throws IOException {
        if (future.logEndOffset() < log.logStartOffset())
            session.manager.truncateFullyAndStartAt(partition, log.logStartOffset(), true, Optional.empty());
        while (future.logEndOffset() < Math.min(to, log.logEndOffset())) {
            long before = future.logEndOffset();
            for (MutableRecordBatch batch : View.read(log, before).batches()) {
                if (batch.baseOffset() >= to) break;
                ByteBuffer one = ByteBuffer.allocate(batch.sizeInBytes());
                batch.writeTo(one);
                one.flip();
                if (batch.baseOffset() < before && future.logStartOffset() == before) // records were deleted up to the middle of it
                    session.manager.truncateFullyAndStartAt(partition, batch.baseOffset(), true, Optional.empty());
                future.appendAsFollower(MemoryRecords.readableRecords(one), batch.partitionLeaderEpoch());
            }
            if (future.logEndOffset() == before) break;
        }
        future.updateHighWatermark(Math.min(log.highWatermark(), future.logEndOffset()));
        future.maybeIncrementLogStartOffset(Math.min(log.logStartOffset(), future.highWatermark()), LogStartOffsetIncrementReason.LeaderOffsetIncremented);
        touched(future);
    }
}
