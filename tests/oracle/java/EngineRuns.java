import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedWriter;
import java.io.File;
import java.io.IOException;
import java.io.OutputStreamWriter;
import java.io.PrintStream;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/** The verbs `engine` and `engine-all`. */
final class EngineRuns {
    private final Map<String, Integer> operations = new TreeMap<>();
    private final Map<String, Integer> errors = new TreeMap<>();

    /** oracle engine SCRIPT DIR [--hex FILE] */
    static void one(Oracle.Arguments a) throws Exception {
        PrintStream stdout = System.out;
        try (Writer out = new BufferedWriter(new OutputStreamWriter(stdout, StandardCharsets.UTF_8));
             Writer hex = a.options.containsKey("hex") ? Files.newBufferedWriter(Path.of(a.options.get("hex"))) : null) {
            new EngineRuns().run(new File(a.positional.get(0)), new File(a.positional.get(1)), out, hex);
        }
    }

    /** oracle engine-all SCRIPT_DIR ROOT [--hex true]: ROOT/NAME/ and ROOT/NAME.transcript.jsonl for each SCRIPT_DIR/NAME.jsonl. */
    static void all(Oracle.Arguments a) throws Exception {
        File[] scripts = new File(a.positional.get(0)).listFiles(f -> f.getName().endsWith(".jsonl"));
        Arrays.sort(scripts);
        Path root = Path.of(a.positional.get(1));
        Files.createDirectories(root);
        EngineRuns runs = new EngineRuns();
        for (File script : scripts) {
            String name = script.getName().replaceAll("\\.jsonl$", "");
            Path dir = root.resolve(name);
            if (Files.exists(dir)) Trees.delete(dir);
            try (Writer out = Files.newBufferedWriter(root.resolve(name + ".transcript.jsonl"));
                 Writer hex = a.options.containsKey("hex") ? Files.newBufferedWriter(root.resolve(name + ".hex.jsonl")) : null) {
                runs.run(script, dir.toFile(), out, hex);
            } catch (Engine.WrongScript e) {
                throw new IllegalArgumentException(script.getName() + ": " + e.getMessage(), e);
            }
        }
        ObjectNode summary = Oracle.JSON.createObjectNode().put("scripts", scripts.length);
        runs.operations.forEach(summary.putObject("operations")::put);
        runs.errors.forEach(summary.putObject("errors")::put);
        System.out.println(Oracle.JSON.writerWithDefaultPrettyPrinter().writeValueAsString(summary));
    }

    private void run(File script, File dir, Writer out, Writer hex) throws Exception {
        Engine engine = null;
        int number = 0;
        for (String line : Files.readAllLines(script.toPath())) {
            number++;
            JsonNode op = line.isBlank() || line.startsWith("#") ? null : Oracle.JSON.readTree(line);
            if (op == null) continue;
            if (engine == null) engine = op.path("op").asText().equals("manager") ? new EngineManager(dir) : new Engine(dir);
            ObjectNode done = engine.run(op, number);
            count(done);
            out.write(done + "\n");
            if (hex != null) hex.write((engine.built == null ? op : EngineBatches.verbatim(op, engine.built)) + "\n");
        }
        if (engine != null) engine.end();
    }

    private void count(ObjectNode done) {
        operations.merge(done.get("op").asText(), 1, Integer::sum);
        if (!done.has("error")) return;
        String cause = done.has("cause") ? " by " + done.get("cause").asText() : "";
        errors.merge(done.get("op").asText() + ": " + done.get("error").asText() + cause, 1, Integer::sum);
    }
}
