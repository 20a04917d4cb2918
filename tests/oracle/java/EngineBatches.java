import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Crc32C;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.ToLongFunction;

/** The bytes of the batches that an `append` or `end_txn` line of an engine script describes, as a client would send them. */
final class EngineBatches {
    private static final int V2_CRC_FROM = DefaultRecordBatch.CRC_OFFSET + 4;

    private static final List<String> DESCRIPTION = List.of("records", "batches", "empty", "marker", "steps", "span",
        "cut", "edit", "fix_crc", "codec", "level", "base_offset");

    /** Where the symbolic values of a script get their numbers from. */
    record Resolver(ToLongFunction<JsonNode> offset, ToLongFunction<JsonNode> epoch, ToLongFunction<JsonNode> sequence) { }

    private final JsonNode op;
    private final long now;
    private final Resolver resolver;

    EngineBatches(JsonNode op, long now, Resolver resolver) {
        this.op = op;
        this.now = now;
        this.resolver = resolver;
    }

    byte[] bytes() {
        byte[] built = op.has("hex") ? HexFormat.of().parseHex(op.get("hex").asText()) : described();
        return op.has("hex") ? built : damaged(built);
    }

    private byte[] described() {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        if (op.has("batches")) for (JsonNode batch : op.get("batches")) out.writeBytes(batch(batch));
        else out.writeBytes(batch(op));
        return out.toByteArray();
    }

    private byte[] batch(JsonNode b) {
        if (b.has("marker")) return marker(b);
        if (b.path("empty").asBoolean(false)) return empty(b);
        return data(b);
    }

    private byte[] marker(JsonNode b) {
        ControlRecordType type = b.get("marker").asText().equals("commit") ? ControlRecordType.COMMIT : ControlRecordType.ABORT;
        MemoryRecords records = MemoryRecords.withEndTransactionMarker(baseOffset(b), b.path("ts").asLong(now), batchEpoch(b),
            producerId(b), (short) resolver.epoch.applyAsLong(b), new EndTransactionMarker(type, b.path("coordinator_epoch").asInt(0)));
        return copy(records.buffer());
    }

    private byte[] empty(JsonNode b) {
        ByteBuffer buffer = ByteBuffer.allocate(DefaultRecordBatch.RECORD_BATCH_OVERHEAD);
        long base = baseOffset(b);
        DefaultRecordBatch.writeEmptyHeader(buffer, RecordBatch.MAGIC_VALUE_V2, producerId(b), (short) resolver.epoch.applyAsLong(b),
            (int) resolver.sequence.applyAsLong(b), base, base + b.path("span").asLong(1) - 1, batchEpoch(b), TimestampType.CREATE_TIME,
            b.path("ts").asLong(now), b.path("txn").asBoolean(false), b.path("control").asBoolean(false));
        return buffer.array();
    }

    private byte[] data(JsonNode b) {
        List<SimpleRecord> records = records(b);
        byte magic = (byte) b.path("magic").asInt(2);
        boolean logAppendTime = b.path("log_append_time").asBoolean(false);
        TimestampType type = magic == 0 ? TimestampType.NO_TIMESTAMP_TYPE
            : logAppendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME;
        Compression codec = ScriptedLog.codec(b);
        int size = 1024;
        for (SimpleRecord r : records) size += 256 + length(r.key()) + length(r.value());
        long[] offsets = offsets(b, records.size());
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(ByteBuffer.allocate(size), magic, codec, type,
            offsets.length == 0 ? baseOffset(b) : offsets[0], logAppendTime ? now : RecordBatch.NO_TIMESTAMP,
            producerId(b), (short) resolver.epoch.applyAsLong(b), (int) resolver.sequence.applyAsLong(b),
            b.path("txn").asBoolean(false), false, magic < 2 ? -1 : batchEpoch(b), size);
        for (int i = 0; i < records.size(); i++) builder.appendWithOffset(offsets[i], records.get(i));
        if (b.has("span") && offsets.length > 0) builder.overrideLastOffset(offsets[0] + b.get("span").asLong() - 1);
        return copy(builder.build().buffer());
    }

    private List<SimpleRecord> records(JsonNode b) {
        List<SimpleRecord> records = new ArrayList<>();
        for (JsonNode r : b.path("records")) {
            List<Header> headers = new ArrayList<>();
            for (JsonNode h : r.path("h"))
                headers.add(new RecordHeader(h.get(0).asText(), h.get(1).isNull() ? null : h.get(1).asText().getBytes(StandardCharsets.UTF_8)));
            records.add(new SimpleRecord(r.path("ts").asLong(now), ScriptedLog.bytes(r, "k"), ScriptedLog.bytes(r, "v"), headers.toArray(new Header[0])));
        }
        return records;
    }

    /** `steps`: the distance of each record's offset from the one before; 1 where there are too few. */
    private long[] offsets(JsonNode b, int count) {
        long[] offsets = new long[count];
        for (int i = 0; i < count; i++)
            offsets[i] = i == 0 ? baseOffset(b) : offsets[i - 1] + (b.path("steps").has(i - 1) ? b.get("steps").get(i - 1).asLong() : 1);
        return offsets;
    }

    private long baseOffset(JsonNode b) {
        return b.has("base_offset") ? resolver.offset.applyAsLong(b.get("base_offset")) : 0;
    }

    /** What stands in the batch: a follower's and a Raft leader's batches have their epoch already, a client's none. */
    private int batchEpoch(JsonNode b) {
        boolean stamped = op.path("as").asText().equals("follower") || op.path("origin").asText().equals("raft");
        if (b.has("batch_epoch")) return b.get("batch_epoch").asInt();
        return stamped ? op.path("leader_epoch").asInt(0) : RecordBatch.NO_PARTITION_LEADER_EPOCH;
    }

    private static long producerId(JsonNode b) {
        return b.path("pid").asLong(RecordBatch.NO_PRODUCER_ID);
    }

    /** `cut` bytes off the end, then `edit`: [[position, hex], …], then the first batch's checksum anew with `fix_crc`. */
    private byte[] damaged(byte[] built) {
        byte[] out = java.util.Arrays.copyOf(built, Math.max(0, built.length - op.path("cut").asInt(0)));
        for (JsonNode edit : op.path("edit")) {
            byte[] patch = HexFormat.of().parseHex(edit.get(1).asText());
            int at = Math.floorMod(edit.get(0).asInt(), Math.max(1, out.length));
            System.arraycopy(patch, 0, out, at, Math.max(0, Math.min(patch.length, out.length - at)));
        }
        if (op.path("fix_crc").asBoolean(false) && out.length >= DefaultRecordBatch.RECORD_BATCH_OVERHEAD) {
            ByteBuffer b = ByteBuffer.wrap(out);
            int end = Math.min(out.length, Math.max(V2_CRC_FROM, b.getInt(8) + 12));
            b.putInt(DefaultRecordBatch.CRC_OFFSET, (int) Crc32C.compute(out, V2_CRC_FROM, end - V2_CRC_FROM));
        }
        return out;
    }

    private static int length(ByteBuffer b) {
        return b == null ? 0 : b.remaining();
    }

    private static byte[] copy(ByteBuffer b) {
        byte[] out = new byte[b.remaining()];
        b.duplicate().get(out);
        return out;
    }

    /** The same line with the bytes themselves instead of their description. */
    static ObjectNode verbatim(JsonNode op, byte[] bytes) {
        ObjectNode out = op.deepCopy();
        for (String gone : DESCRIPTION) out.remove(gone);
        return out.put("hex", HexFormat.of().formatHex(bytes));
    }
}
