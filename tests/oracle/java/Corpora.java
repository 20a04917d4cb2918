import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.storage.internals.log.UnifiedLog;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileReader;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/** Many scripts in one process: what Kafka's cleaner starts from, and what it leaves. */
final class Corpora {
    private Corpora() { }

    /**
     * oracle cases ROOT: for every ROOT/NAME/script.jsonl, writes before/ (as built), after/ (as Kafka cleans it, at the
     * script's last clock and configuration) and case.json. Where Kafka's cleaner fails there is no after/, but a clean_error.
     */
    static void cases(Oracle.Arguments a) throws Exception {
        File[] scripts = new File(a.positional.get(0)).listFiles(d -> new File(d, "script.jsonl").exists());
        Arrays.sort(scripts);
        for (File dir : scripts) {
            File before = new File(dir, "before"), after = new File(dir, "after");
            if (before.exists()) Trees.delete(before.toPath());
            if (after.exists()) Trees.delete(after.toPath());
            ObjectNode built;
            try {
                built = ScriptedLog.build(new File(dir, "script.jsonl"), before);
            } catch (Exception e) { // Kafka itself refuses a line of the script: no case
                if (before.exists()) Trees.delete(before.toPath());
                Files.writeString(new File(dir, "case.json").toPath(), Oracle.JSON.createObjectNode().put("build_error", e + ": " + e.getCause()) + "\n");
                continue;
            }
            Trees.copy(before.toPath(), after.toPath());
            Map<String, String> config = new TreeMap<>();
            built.get("config").properties().forEach(e -> config.put(e.getKey(), e.getValue().asText()));
            StillClock clock = new StillClock(built.get("now_ms").asLong());
            UnifiedLog log = PartitionLog.open(after, new TopicPartition(built.get("topic").asText(), built.get("partition").asInt()), PartitionLog.logConfig(config), clock, true);
            try {
                built.set("clean", Cleaning.cleanOpen(after, log, clock, -1, -1, -1));
                PartitionLog.close(after, log);
            } catch (Exception e) { // Kafka would mark the partition uncleanable
                Trees.delete(after.toPath());
                built.put("clean_error", e.toString());
            }
            Files.writeString(new File(dir, "case.json").toPath(), Oracle.JSON.writerWithDefaultPrettyPrinter().writeValueAsString(built) + "\n");
        }
    }

    /**
     * oracle fleet SCRIPT_DIR ROOT: builds every SCRIPT_DIR/*.jsonl (each names its own topic) into one log directory,
     * ROOT/before; cleans each partition of a copy of it, ROOT/after, once, all at the same clock; writes
     * ROOT/topic-configs.json and ROOT/fleet.json. Scripts that Kafka refuses, or whose cleaning fails, are listed there.
     */
    static void fleet(Oracle.Arguments a) throws Exception {
        File[] scripts = new File(a.positional.get(0)).listFiles(f -> f.getName().endsWith(".jsonl"));
        Arrays.sort(scripts);
        File root = new File(a.positional.get(1)), before = new File(root, "before"), after = new File(root, "after");
        ObjectNode fleet = Oracle.JSON.createObjectNode(), configs = Oracle.JSON.createObjectNode(), results = Oracle.JSON.createObjectNode();
        Map<TopicPartition, Map<String, String>> built = new LinkedHashMap<>();
        long now = 0;
        for (File script : scripts) {
            TopicPartition tp = null;
            try (BufferedReader in = new BufferedReader(new FileReader(script))) {
                for (String line; (line = in.readLine()) != null && tp == null; ) {
                    JsonNode op = Oracle.JSON.readTree(line);
                    if (op.path("op").asText().equals("partition")) tp = new TopicPartition(op.get("topic").asText(), op.get("partition").asInt());
                }
            }
            try {
                ObjectNode b = ScriptedLog.build(script, before);
                Map<String, String> config = new TreeMap<>();
                b.get("config").properties().forEach(e -> config.put(e.getKey(), e.getValue().asText()));
                built.put(tp, config);
                configs.set(tp.topic(), b.get("config"));
                now = Math.max(now, b.get("now_ms").asLong());
            } catch (Exception e) {
                results.putObject(script.getName()).put("build_error", e + ": " + e.getCause());
                File half = new File(before, tp.topic() + "-" + tp.partition());
                if (half.exists()) Trees.delete(half.toPath());
            }
        }
        Trees.copy(before.toPath(), after.toPath());
        Cleaning.cleanEach(after, built, now, (int) a.number("slots", -1), results);
        fleet.put("now_ms", now).set("results", results);
        Files.writeString(new File(root, "fleet.json").toPath(), Oracle.JSON.writerWithDefaultPrettyPrinter().writeValueAsString(fleet) + "\n");
        Files.writeString(new File(root, "topic-configs.json").toPath(), Oracle.JSON.writerWithDefaultPrettyPrinter().writeValueAsString(configs) + "\n");
        System.out.println(root + ": " + built.size() + " partitions, now " + now);
    }
}
