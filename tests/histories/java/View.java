import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.Records;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.AbortedTxn;
import org.apache.kafka.storage.internals.log.LogSegment;
import org.apache.kafka.storage.internals.log.ProducerStateEntry;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;

/** A log as its consumers see it, and its offsets and epochs. */
final class View {
    private static final int COMMITTED = 0, ABORTED = 1, OPEN = 2;

    private View() { }

    /** records: [offset, leader epoch, timestamp, producer id, 0 committed or 1 aborted or 2 open, key, value], ... */
    static ObjectNode of(UnifiedLog log, int dir) throws IOException {
        ObjectNode out = Histories.JSON.createObjectNode().put("dir", dir).put("start", log.logStartOffset()).put("end", log.logEndOffset())
            .put("high_watermark", log.highWatermark()).put("first_unstable", log.firstUnstableOffset().orElse(null))
            .put("topic_id", log.topicId().map(Object::toString).orElse(null));
        ArrayNode epochs = out.putArray("epochs");
        log.leaderEpochCache().epochEntries().forEach(e -> epochs.addArray().add(e.epoch()).add(e.startOffset()));
        ArrayNode segments = out.putArray("segments");
        for (LogSegment s : log.logSegments()) segments.add(s.baseOffset());
        records(log, out.putArray("records"));
        return out;
    }

    private static void records(UnifiedLog log, ArrayNode out) throws IOException {
        long start = log.logStartOffset(), end = log.logEndOffset();
        PriorityQueue<AbortedTxn> aborted = new PriorityQueue<>(Comparator.comparingLong(AbortedTxn::firstOffset));
        aborted.addAll(log.collectAbortedTransactions(start, end));
        Map<Long, Long> open = new HashMap<>();
        for (ProducerStateEntry p : log.producerStateManager().activeProducers().values())
            if (p.currentTxnFirstOffset().isPresent()) open.put(p.producerId(), p.currentTxnFirstOffset().getAsLong());
        Set<Long> abortedNow = new HashSet<>();
        for (long at = start; at < end; ) {
            long next = at;
            for (RecordBatch batch : read(log, at).batches()) {
                next = batch.nextOffset();
                if (batch.hasProducerId())
                    while (!aborted.isEmpty() && aborted.peek().firstOffset() <= batch.lastOffset()) abortedNow.add(aborted.poll().producerId());
                if (isAbort(batch)) abortedNow.remove(batch.producerId());
                boolean gone = batch.isTransactional() && abortedNow.contains(batch.producerId());
                long openFrom = batch.isTransactional() ? open.getOrDefault(batch.producerId(), Long.MAX_VALUE) : Long.MAX_VALUE;
                add(batch, start, batch.lastOffset() >= openFrom ? OPEN : gone ? ABORTED : COMMITTED, out);
            }
            if (next == at) break; // nothing is left up to the end
            at = next;
        }
    }

    /** As a consumer of committed records tells it. */
    private static boolean isAbort(RecordBatch batch) {
        if (!batch.isControlBatch()) return false;
        Iterator<Record> records = batch.iterator();
        return records.hasNext() && ControlRecordType.ABORT == ControlRecordType.parse(records.next().key());
    }

    private static void add(RecordBatch batch, long start, int fate, ArrayNode out) {
        if (batch.isControlBatch()) return;
        batch.ensureValid();
        for (Record r : batch)
            if (r.offset() >= start)
                out.addArray().add(r.offset()).add(batch.partitionLeaderEpoch()).add(r.timestamp()).add(batch.producerId()).add(fate)
                    .add(text(r.key())).add(text(r.value()));
    }

    private static String text(ByteBuffer b) {
        return b == null ? null : StandardCharsets.UTF_8.decode(b.duplicate()).toString();
    }

    static MemoryRecords read(UnifiedLog log, long offset) throws IOException {
        Records records = log.read(offset, 1 << 24, FetchIsolation.LOG_END, true).records;
        if (records instanceof MemoryRecords memory) return memory;
        ByteBuffer buffer = ByteBuffer.allocate(records.sizeInBytes());
        ((FileRecords) records).readInto(buffer, 0);
        return MemoryRecords.readableRecords(buffer);
    }

    /** Asked: paths of partition directories by any name; answered: all records of each, from the files alone; the fate by the markers. */
    static ObjectNode ofDirectories(JsonNode asked) throws IOException {
        ObjectNode out = Histories.JSON.createObjectNode();
        for (Map.Entry<String, JsonNode> e : asked.get("paths").properties()) {
            ArrayNode records = out.putArray(e.getKey());
            List<RecordBatch> batches = new ArrayList<>();
            File[] files = new File(e.getValue().asText()).listFiles(f -> f.getName().endsWith(".log"));
            Arrays.sort(files);
            List<FileRecords> open = new ArrayList<>();
            for (File file : files) {
                open.add(FileRecords.open(file, false));
                open.get(open.size() - 1).batches().forEach(batches::add);
            }
            Map<Long, Integer> fates = new HashMap<>();
            int[] fate = new int[batches.size()];
            for (int i = batches.size() - 1; i >= 0; i--) {
                RecordBatch batch = batches.get(i);
                if (batch.isControlBatch()) fates.put(batch.producerId(), isAbort(batch) ? ABORTED : COMMITTED);
                else if (batch.isTransactional()) fate[i] = fates.getOrDefault(batch.producerId(), OPEN);
            }
            for (int i = 0; i < fate.length; i++) add(batches.get(i), 0, fate[i], records);
            for (FileRecords records1 : open) records1.close();
        }
        return out;
    }
}
