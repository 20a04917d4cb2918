import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.FileLogInputStream;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;

import java.io.BufferedWriter;
import java.io.File;
import java.io.OutputStreamWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/** Batches and records as Kafka's reader sees them. */
final class Dump {
    private Dump() { }

    /** oracle dump PARTITION_DIR [--suffix .cleaned]: one JSON line for each batch and each record, as Kafka's reader sees them. */
    static void dump(Oracle.Arguments a) throws Exception {
        File dir = new File(a.positional.get(0));
        String suffix = a.options.getOrDefault("suffix", "");
        File[] files = dir.listFiles(f -> f.getName().endsWith(".log" + suffix));
        Arrays.sort(files);
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8), 1 << 16);
        for (File f : files) {
            try (FileRecords records = FileRecords.open(f, false)) {
                for (FileLogInputStream.FileChannelRecordBatch b : records.batches()) {
                    b.ensureValid();
                    ObjectNode n = Oracle.JSON.createObjectNode().put("segment", f.getName()).put("position", b.position()).put("size", b.sizeInBytes()).put("magic", b.magic())
                        .put("base_offset", b.baseOffset()).put("last_offset", b.lastOffset()).put("codec", b.compressionType().name)
                        .put("timestamp_type", b.timestampType().name).put("max_timestamp", b.maxTimestamp()).put("pid", b.producerId())
                        .put("epoch", b.producerEpoch()).put("base_sequence", b.baseSequence()).put("leader_epoch", b.partitionLeaderEpoch())
                        .put("txn", b.isTransactional()).put("control", b.isControlBatch()).put("checksum", b.checksum());
                    if (b.deleteHorizonMs().isPresent()) n.put("delete_horizon_ms", b.deleteHorizonMs().getAsLong());
                    out.write(n.toString());
                    out.write('\n');
                    try (CloseableIterator<Record> it = b.streamingIterator(BufferSupplier.NO_CACHING)) {
                        while (it.hasNext()) {
                            Record r = it.next();
                            ObjectNode m = Oracle.JSON.createObjectNode().put("offset", r.offset()).put("timestamp", r.timestamp())
                                .put("key", hex(r.hasKey() ? r.key() : null)).put("value", hex(r.hasValue() ? r.value() : null));
                            if (r.headers().length > 0) {
                                var hs = m.putArray("headers");
                                for (Header h : r.headers()) hs.addArray().add(h.key()).add(h.value() == null ? null : HexFormat.of().formatHex(h.value()));
                            }
                            out.write(m.toString());
                            out.write('\n');
                        }
                    }
                }
            }
        }
        out.flush();
    }

    static String hex(ByteBuffer b) {
        if (b == null) return null;
        byte[] x = new byte[b.remaining()];
        b.duplicate().get(x);
        return HexFormat.of().formatHex(x);
    }
}
