import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.RecordVersion;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.server.common.RequestLocal;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogFileUtils;
import org.apache.kafka.storage.internals.log.LogStartOffsetIncrementReason;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.internals.log.VerificationGuard;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

/** Writes the partition that a script of JSON lines describes; ../README.md lists the operations. */
final class ScriptedLog {
    private static final long FIRST_FILLING_PRODUCER = 1000;

    private final File logDir;
    private final StillClock clock = new StillClock(1_700_000_000_000L);
    private final Map<String, String> config = new TreeMap<>();
    private final Map<Long, Long> mtimes = new LinkedHashMap<>();
    private TopicPartition partition = new TopicPartition("t", 0);
    private UnifiedLog log; // opened by the first operation that needs it
    private Long highWatermark; // null: the log end offset
    private Long checkpoint; // null: what the script's own cleanings have left
    private final Map<Integer, Integer> nextSequences = new TreeMap<>(); // of the producers that fill
    private JsonNode mtimeSpread;
    private final List<String> removed = new ArrayList<>();
    private boolean shutdown = true;

    private ScriptedLog(File logDir) {
        this.logDir = logDir;
    }

    /** oracle build SCRIPT LOG_DIR: returns topic, partition, log_end_offset, now_ms and the configuration at the end. */
    static ObjectNode build(File script, File logDir) throws Exception {
        Files.createDirectories(logDir.toPath());
        ScriptedLog built = new ScriptedLog(logDir);
        try (BufferedReader in = new BufferedReader(script.getPath().equals("-") ? new InputStreamReader(System.in) : new FileReader(script))) {
            int number = 0;
            for (String line; (line = in.readLine()) != null; ) {
                number++;
                if (line.isBlank() || line.startsWith("#")) continue;
                try {
                    built.apply(Oracle.JSON.readTree(line));
                } catch (Exception e) {
                    throw new RuntimeException("line " + number + ": " + line.substring(0, Math.min(200, line.length())), e);
                }
            }
        }
        return built.finish();
    }

    private UnifiedLog log() throws IOException {
        if (log == null) log = PartitionLog.open(logDir, partition, PartitionLog.logConfig(config), clock, true);
        return log;
    }

    private void apply(JsonNode op) throws Exception {
        switch (op.get("op").asText()) {
            case "partition" -> partition = new TopicPartition(op.get("topic").asText(), op.get("partition").asInt());
            case "config" -> {
                op.properties().forEach(e -> {
                    if (!e.getKey().equals("op")) config.put(e.getKey(), e.getValue().asText());
                });
                if (log != null) log.updateConfig(PartitionLog.logConfig(config));
            }
            case "clock" -> clock.now = op.has("ms") ? op.get("ms").asLong() : clock.now + op.get("advance").asLong();
            case "append" -> append(op);
            case "append_raw" -> log().appendAsFollower(
                MemoryRecords.readableRecords(ByteBuffer.wrap(HexFormat.of().parseHex(op.get("hex").asText()))), op.path("leader_epoch").asInt(0));
            case "fill" -> fill(op);
            case "end_txn" -> endTxn(op);
            case "roll" -> log().roll();
            case "snapshot" -> log().takeProducerSnapshot();
            case "high_watermark" -> highWatermark = op.get("offset").asLong();
            case "checkpoint" -> checkpoint = op.get("offset").asLong();
            case "log_start" -> {
                log().updateHighWatermark(log.logEndOffset());
                log.maybeIncrementLogStartOffset(op.get("offset").asLong(), LogStartOffsetIncrementReason.ClientRecordDeletion);
            }
            case "delete_old_segments" -> {
                log().updateHighWatermark(log.logEndOffset());
                log.deleteOldSegments();
            }
            case "mtime" -> {
                if (op.has("segment")) mtimes.put(op.get("segment").asLong(), op.get("ms").asLong());
                else mtimeSpread = op;
            }
            case "clean" -> {
                log().updateHighWatermark(highWatermark == null ? log.logEndOffset() : highWatermark);
                Cleaning.cleanOpen(logDir, log, clock, op.path("first_dirty").asLong(-1), op.path("uncleanable").asLong(-1),
                    op.path("slots").asInt(-1));
            }
            case "remove" -> op.get("suffixes").forEach(s -> removed.add(LogFileUtils.filenamePrefixFromOffset(op.get("segment").asLong()) + s.asText()));
            case "crash" -> shutdown = false;
            default -> throw new IllegalArgumentException("unknown op");
        }
    }

    private ObjectNode finish() throws IOException {
        long end = log().logEndOffset();
        File dir = log.dir();
        PartitionLog.close(logDir, log);
        // what loading tidies up is tidied up before
        PartitionLog.close(logDir, PartitionLog.open(logDir, partition, PartitionLog.logConfig(config), clock, true));
        PartitionLog.writeCheckpoint(logDir, "replication-offset-checkpoint", partition, highWatermark == null ? end : highWatermark);
        if (checkpoint != null) PartitionLog.writeCheckpoint(logDir, "cleaner-offset-checkpoint", partition, checkpoint);
        if (!shutdown) Files.delete(new File(logDir, ".kafka_cleanshutdown").toPath());
        setModificationTimes(dir);
        for (String name : removed) Files.delete(new File(dir, name).toPath());
        File meta = new File(logDir, "meta.properties");
        if (!meta.exists()) Files.writeString(meta.toPath(), "version=1\nbroker.id=1\nnode.id=1\ncluster.id=oracle-oracle-oracle-ab\ndirectory.id=AAAAAAAAAAAAAAAAAAAAZQ\n");
        File pm = new File(dir, "partition.metadata");
        if (!pm.exists()) Files.writeString(pm.toPath(), "version: 0\ntopic_id: " + new Uuid(7, partition.hashCode()));
        ObjectNode out = Oracle.JSON.createObjectNode().put("topic", partition.topic()).put("partition", partition.partition())
            .put("log_end_offset", end).put("now_ms", clock.now);
        ObjectNode settings = out.putObject("config");
        config.forEach(settings::put);
        return out;
    }

    private void setModificationTimes(File dir) throws IOException {
        if (mtimeSpread != null) {
            File[] logs = dir.listFiles(f -> f.getName().endsWith(".log"));
            Arrays.sort(logs);
            long from = mtimeSpread.get("from").asLong(), step = mtimeSpread.get("step").asLong();
            for (int i = 0; i < logs.length; i++) setModified(logs[i], from + i * step);
        }
        for (Map.Entry<Long, Long> m : mtimes.entrySet()) setModified(LogFileUtils.logFile(dir, m.getKey()), m.getValue());
    }

    private static void setModified(File file, long ms) throws IOException {
        if (!file.setLastModified(ms)) throw new IOException("cannot set the time of modification of " + file);
    }

    static Compression codec(JsonNode op) {
        CompressionType type = CompressionType.forName(op.path("codec").asText("none"));
        boolean level = op.has("level");
        return switch (type) {
            case GZIP -> level ? Compression.gzip().level(op.get("level").asInt()).build() : Compression.gzip().build();
            case LZ4 -> level ? Compression.lz4().level(op.get("level").asInt()).build() : Compression.lz4().build();
            case ZSTD -> level ? Compression.zstd().level(op.get("level").asInt()).build() : Compression.zstd().build();
            default -> Compression.of(type).build();
        };
    }

    static byte[] bytes(JsonNode record, String name) {
        if (record.has(name + "_hex")) return HexFormat.of().parseHex(record.get(name + "_hex").asText());
        JsonNode n = record.get(name);
        return n == null || n.isNull() ? null : n.asText().getBytes(StandardCharsets.UTF_8);
    }

    private void append(JsonNode op) throws IOException {
        List<SimpleRecord> records = new ArrayList<>();
        for (JsonNode r : op.get("records")) {
            List<Header> headers = new ArrayList<>();
            for (JsonNode h : r.path("h")) headers.add(new RecordHeader(h.get(0).asText(),
                h.get(1).isNull() ? null : h.get(1).asText().getBytes(StandardCharsets.UTF_8)));
            records.add(new SimpleRecord(r.path("ts").asLong(clock.now), bytes(r, "k"), bytes(r, "v"), headers.toArray(new Header[0])));
        }
        long[] offsets = null;
        if (op.has("offsets")) {
            offsets = new long[records.size()];
            for (int i = 0; i < offsets.length; i++) offsets[i] = op.get("offsets").get(i).asLong();
        }
        write(op, codec(op), records, offsets);
    }

    /** Appends as a leader would, or, when offsets are given, as a follower that takes them as they are. */
    private void write(JsonNode op, Compression codec, List<SimpleRecord> records, long[] offsets) throws IOException {
        byte magic = (byte) op.path("magic").asInt(2);
        boolean logAppendTime = op.path("log_append_time").asBoolean(false);
        TimestampType type = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE : logAppendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        int leaderEpoch = op.path("leader_epoch").asInt(0);
        int size = 1024;
        for (SimpleRecord r : records) size += 128 + (r.key() == null ? 0 : r.key().remaining()) + (r.value() == null ? 0 : r.value().remaining());
        MemoryRecordsBuilder b = new MemoryRecordsBuilder(ByteBuffer.allocate(size), magic, codec, type,
            offsets == null ? 0L : offsets[0], logAppendTime ? clock.now : RecordBatch.NO_TIMESTAMP,
            op.path("pid").asLong(-1), (short) op.path("epoch").asInt(-1), op.path("seq").asInt(-1),
            op.path("txn").asBoolean(false), false, offsets == null ? -1 : leaderEpoch, size);
        for (int i = 0; i < records.size(); i++) {
            if (offsets == null) b.append(records.get(i));
            else b.appendWithOffset(offsets[i], records.get(i));
        }
        MemoryRecords built = b.build();
        if (offsets != null) log().appendAsFollower(built, leaderEpoch);
        else if (magic < 2) log().appendAsLeaderWithRecordVersion(built, leaderEpoch, RecordVersion.lookup(magic));
        else log().appendAsLeader(built, leaderEpoch);
    }

    private void endTxn(JsonNode op) throws IOException {
        ControlRecordType type = op.get("commit").asBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        MemoryRecords m = MemoryRecords.withEndTransactionMarker(0L, op.path("ts").asLong(clock.now), op.path("leader_epoch").asInt(0),
            op.get("pid").asLong(), (short) op.get("epoch").asInt(), new EndTransactionMarker(type, op.path("coordinator_epoch").asInt(0)));
        log().appendAsLeader(m, op.path("leader_epoch").asInt(0), AppendOrigin.COORDINATOR, RequestLocal.noCaching(),
            VerificationGuard.SENTINEL, (short) op.path("transaction_version").asInt(1));
    }

    /** Many random batches: the same seed gives the same log. With producers, in transactions of so many batches, one producer after the other. */
    private void fill(JsonNode op) throws IOException {
        Random random = new Random(op.path("seed").asLong(1));
        int batches = op.get("batches").asInt(), perBatch = op.get("records").asInt(), valueBytes = op.get("value_bytes").asInt();
        long keys = op.get("keys").asLong();
        int keyBytes = op.path("key_bytes").asInt(16);
        double tombstones = op.path("tombstones").asDouble(0), skew = op.path("skew").asDouble(0), nullKeys = op.path("null_keys").asDouble(0);
        long advance = op.path("advance").asLong(1);
        double entropy = op.path("entropy").asDouble(1.0); // share of a value's bytes that are random, the rest repeats
        Compression codec = codec(op);
        int producers = op.path("producers").asInt(0), perTransaction = op.path("txn_batches").asInt(1);
        double aborted = op.path("aborted").asDouble(0); // share of the transactions
        int[] open = new int[producers];
        ObjectNode its = op.deepCopy();
        for (int i = 0; i < batches; i++) {
            List<SimpleRecord> records = new ArrayList<>(perBatch);
            for (int j = 0; j < perBatch; j++) {
                long key = skew > 0 ? (long) (keys * Math.pow(random.nextDouble(), 1 + skew)) : random.nextLong(keys);
                byte[] k = null;
                if (random.nextDouble() >= nullKeys) {
                    k = new byte[keyBytes];
                    byte[] digits = Long.toString(key).getBytes(StandardCharsets.US_ASCII);
                    Arrays.fill(k, (byte) '0');
                    System.arraycopy(digits, 0, k, Math.max(0, keyBytes - digits.length), Math.min(keyBytes, digits.length));
                }
                byte[] v = null;
                if (k == null || random.nextDouble() >= tombstones) {
                    v = new byte[valueBytes];
                    byte[] noise = new byte[(int) (valueBytes * entropy)];
                    random.nextBytes(noise);
                    Arrays.fill(v, (byte) 'v');
                    System.arraycopy(noise, 0, v, 0, noise.length);
                }
                records.add(new SimpleRecord(clock.now, k, v));
            }
            clock.now += advance;
            if (producers == 0) {
                write(op, codec, records, null);
                continue;
            }
            int p = i % producers;
            write(its.put("pid", FIRST_FILLING_PRODUCER + p).put("epoch", 0).put("seq", nextSequences.merge(p, records.size(), Integer::sum) - records.size()).put("txn", true), codec, records, null);
            if (++open[p] == perTransaction) {
                endTxn(its.put("commit", random.nextDouble() >= aborted));
                open[p] = 0;
            }
        }
        // transactions that have not had all their batches stay open
    }
}
