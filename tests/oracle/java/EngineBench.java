import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Crc32C;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.FetchDataInfo;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;

/** oracle engine-bench DIR [--mb N] [--repeat N]: how fast Kafka's engine is on this machine, one thread, everything in the page cache. */
final class EngineBench {
    private static final ThreadMXBean THREAD = ManagementFactory.getThreadMXBean();
    private static final int LOOKUPS = 100_000;
    private static final int BASE_TIMESTAMP = 27, MAX_TIMESTAMP = 35; // their places in a batch

    private final File root;
    private final long bytes;
    private final int repeat;
    private final StillClock clock = new StillClock(Engine.FIRST_CLOCK_MS);

    /** A log that is open, and where; its batches are all alike. */
    private record Bench(String name, File dir, UnifiedLog log, int batchBytes, int records) { }

    /** Time by the clock, and time that this thread had a processor: on a busy machine only the second is the engine's. */
    private static final class Watch {
        private final long wall = System.nanoTime(), cpu = THREAD.getCurrentThreadCpuTime();

        Took took() {
            return new Took((System.nanoTime() - wall) / 1e9, (THREAD.getCurrentThreadCpuTime() - cpu) / 1e9);
        }
    }

    private record Took(double wall, double cpu) {
        Took less(Took other) {
            return new Took(wall - other.wall, cpu - other.cpu);
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    private EngineBench(Oracle.Arguments a) {
        root = new File(a.positional.get(0)).getAbsoluteFile();
        bytes = a.number("mb", 300) << 20;
        repeat = (int) a.number("repeat", 3);
    }

    static void run(Oracle.Arguments a) throws Exception {
        EngineBench bench = new EngineBench(a);
        bench.measure("1 KB batches", batch(1, 1_024 - 61 - 22));
        bench.measure("16 KB batches of 100-byte records", batch(154, 100 - 16));
    }

    /** A batch of records with 8-byte keys. */
    private static ByteBuffer batch(int records, int valueBytes) {
        Random random = new Random(1);
        SimpleRecord[] all = new SimpleRecord[records];
        for (int i = 0; i < records; i++) {
            byte[] key = new byte[8], value = new byte[valueBytes];
            random.nextBytes(key);
            random.nextBytes(value);
            all[i] = new SimpleRecord(Engine.FIRST_CLOCK_MS + i, key, value);
        }
        return MemoryRecords.withRecords(RecordBatch.MAGIC_VALUE_V2, 0L, Compression.NONE, TimestampType.CREATE_TIME, all).buffer();
    }

    private void measure(String name, ByteBuffer batch) throws Exception {
        Bench b = null;
        List<Took> appends = new ArrayList<>();
        for (int i = -1; i < repeat; i++) { // the first warms up
            if (b != null) drop(b);
            b = open(name, batch);
            Took stamps = batches(b, batch, false), all = batches(b, batch, true);
            if (i >= 0) appends.add(all.less(stamps));
        }
        print(b, "append", appends, bytes / b.batchBytes, bytes);
        reads(b);
        lookups(b);
        loads(b);
    }

    private Bench open(String name, ByteBuffer batch) throws Exception {
        File dir = new File(root, "t-0");
        if (dir.exists()) Trees.delete(dir.toPath());
        Files.createDirectories(dir.toPath());
        MemoryRecords records = MemoryRecords.readableRecords(batch.duplicate());
        return new Bench(name, dir, load(dir, true), batch.remaining(), records.batches().iterator().next().countOrNull());
    }

    private UnifiedLog load(File dir, boolean clean) throws Exception {
        return UnifiedLog.create(dir, Engine.logConfig(Map.of("segment.bytes", "134217728")), 0L, 0L,
            new EngineScheduler(clock), new BrokerTopicStats(), clock, 300_000, new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(10), clean, Optional.empty());
    }

    /** The same records again and again, a millisecond for each; without the append only what the bench itself costs. */
    private Took batches(Bench b, ByteBuffer batch, boolean append) throws Exception {
        clock.now = Engine.FIRST_CLOCK_MS;
        Watch watch = new Watch();
        for (long n = bytes / b.batchBytes; n > 0; n--, clock.now += b.records) {
            stamp(batch, clock.now, b.records);
            if (append) b.log.appendAsLeader(MemoryRecords.readableRecords(batch.duplicate()), 0);
        }
        return watch.took();
    }

    /** Timestamps that rise, and base offset 0 again where the log wrote its own. */
    private static void stamp(ByteBuffer batch, long ts, int records) {
        batch.putLong(0, 0L).putLong(BASE_TIMESTAMP, ts).putLong(MAX_TIMESTAMP, ts + records - 1);
        int from = DefaultRecordBatch.CRC_OFFSET + 4;
        batch.putInt(DefaultRecordBatch.CRC_OFFSET, (int) Crc32C.compute(batch, from, batch.limit() - from));
    }

    /** The first run warms up. */
    private List<Took> repeated(Work work) throws Exception {
        List<Took> out = new ArrayList<>();
        for (int i = -1; i < repeat; i++) {
            Watch watch = new Watch();
            work.run();
            if (i >= 0) out.add(watch.took());
        }
        return out;
    }

    private void reads(Bench b) throws Exception {
        ByteBuffer into = ByteBuffer.allocate(1 << 20);
        long batches = b.log.size() / b.batchBytes;
        print(b, "read 1 MB at a time, batch headers only", repeated(() -> read(b.log, null)), batches, b.log.size());
        print(b, "read 1 MB at a time, bytes into memory", repeated(() -> read(b.log, into)), batches, b.log.size());
    }

    private static void read(UnifiedLog log, ByteBuffer into) throws Exception {
        for (long at = log.logStartOffset(); at < log.logEndOffset(); ) {
            FetchDataInfo info = log.read(at, 1 << 20, FetchIsolation.LOG_END, true);
            if (into == null) at = info.records.lastBatch().get().nextOffset();
            else {
                into.clear();
                ((FileRecords) info.records).readInto(into, 0);
                for (RecordBatch batch : MemoryRecords.readableRecords(into).batches()) at = batch.nextOffset();
            }
        }
    }

    private void lookups(Bench b) throws Exception {
        Random random = new Random(1);
        long end = b.log.logEndOffset();
        print(b, "offset lookup, random", repeated(() -> {
            for (int n = 0; n < LOOKUPS; n++) b.log.maybeConvertToOffsetMetadata(random.nextLong(end));
        }), LOOKUPS, 0);
        print(b, "read of one batch, random", repeated(() -> {
            for (int n = 0; n < LOOKUPS; n++) b.log.read(random.nextLong(end), b.batchBytes, FetchIsolation.LOG_END, true);
        }), LOOKUPS, 0);
        print(b, "timestamp lookup, random", repeated(() -> {
            for (int n = 0; n < LOOKUPS; n++) b.log.fetchOffsetByTimestamp(Engine.FIRST_CLOCK_MS + random.nextLong(end), Optional.empty());
        }), LOOKUPS, 0);
    }

    private void loads(Bench b) throws Exception {
        List<Took> unclean = new ArrayList<>(), clean = new ArrayList<>();
        UnifiedLog log = b.log;
        long size = log.size();
        for (int i = -1; i < repeat; i++) {
            log.closeHandlers();
            Watch watch = new Watch();
            log = load(b.dir, false);
            Took first = watch.took();
            log.flush(true);
            log.close();
            watch = new Watch();
            log = load(b.dir, true);
            if (i < 0) continue;
            unclean.add(first);
            clean.add(watch.took());
        }
        print(b, "load after a crash, all to be recovered", unclean, size / b.batchBytes, size);
        print(b, "load after a clean shutdown", clean, size / b.batchBytes, size);
        drop(new Bench(b.name, b.dir, log, 0, 0));
    }

    private static void drop(Bench b) throws Exception {
        b.log.closeHandlers();
        Trees.delete(b.dir.toPath());
    }

    /** The run with the median of processor time counts. */
    private static void print(Bench b, String what, List<Took> runs, long operations, long bytes) {
        List<Took> sorted = new ArrayList<>(runs);
        sorted.sort(Comparator.comparingDouble(Took::cpu));
        Took median = sorted.get(sorted.size() / 2);
        ObjectNode out = Oracle.JSON.createObjectNode().put("log", b.name).put("what", what)
            .put("cpu_seconds", round(median.cpu)).put("seconds", round(median.wall));
        ArrayNode all = out.putArray("cpu_seconds_of_runs");
        for (Took t : runs) all.add(round(t.cpu));
        out.put("operations", operations).put("per_cpu_second", Math.round(operations / median.cpu))
            .put("cpu_microseconds_each", round(median.cpu * 1e6 / operations));
        if (bytes > 0) out.put("megabytes", Math.round(bytes / 1e6)).put("megabytes_per_cpu_second", Math.round(bytes / 1e6 / median.cpu));
        System.out.println(out);
    }

    private static double round(double x) {
        return Double.parseDouble(String.format(java.util.Locale.ROOT, "%.4g", x));
    }
}
