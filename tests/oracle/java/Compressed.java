import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

import java.io.File;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** Payloads as the jars' own codecs leave them. */
final class Compressed {
    private static final int BYTES_A_WRITE = 100; // a record's bytes come in small pieces, too

    private Compressed() { }

    /** oracle compressed FOLDER: beside every NAME.raw NAME.gzip, NAME.snappy, NAME.lz4, NAME.zstd. */
    static void folder(Oracle.Arguments a) throws Exception {
        File[] found = new File(a.positional.get(0)).listFiles((dir, name) -> name.endsWith(".raw"));
        Arrays.sort(found);
        for (File file : found) {
            byte[] payload = Files.readAllBytes(file.toPath());
            String name = file.getName().substring(0, file.getName().length() - ".raw".length());
            for (CompressionType type : CompressionType.values()) {
                if (type == CompressionType.NONE) continue;
                Path target = file.toPath().resolveSibling(name + "." + type.name);
                Files.write(target, compressed(Compression.of(type).build(), payload));
            }
        }
    }

    /** As MemoryRecordsBuilder has it written behind a batch's header. */
    private static byte[] compressed(Compression codec, byte[] payload) throws Exception {
        ByteBufferOutputStream buffer = new ByteBufferOutputStream(Math.max(512, payload.length));
        try (OutputStream out = codec.wrapForOutput(buffer, RecordBatch.MAGIC_VALUE_V2)) {
            for (int at = 0; at < payload.length; at += BYTES_A_WRITE)
                out.write(payload, at, Math.min(BYTES_A_WRITE, payload.length - at));
        }
        ByteBuffer written = buffer.buffer();
        written.flip();
        byte[] bytes = new byte[written.remaining()];
        written.get(bytes);
        return bytes;
    }
}
