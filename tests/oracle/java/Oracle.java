import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.File;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Kafka's own storage engine and log cleaner, driven from the command line. ../README.md tells how. */
public final class Oracle {
    static final ObjectMapper JSON = new ObjectMapper();

    private Oracle() { }

    public static void main(String[] args) throws Exception {
        Arguments a = new Arguments(args);
        switch (args.length == 0 ? "" : args[0]) {
            case "build" -> System.out.println(ScriptedLog.build(new File(a.positional.get(0)), new File(a.positional.get(1))));
            case "cases" -> Corpora.cases(a);
            case "fleet" -> Corpora.fleet(a);
            case "clean" -> Cleaning.clean(a);
            case "clean-all" -> Cleaning.cleanAll(a);
            case "clean-many" -> Cleaning.cleanMany(a);
            case "recover-all" -> Cleaning.recoverAll(a);
            case "select" -> Cleaning.select(a);
            case "recover" -> Cleaning.recover(a);
            case "retain" -> Cleaning.retain(a);
            case "dump" -> Dump.dump(a);
            case "compressed" -> Compressed.folder(a);
            case "bench" -> Bench.bench(a);
            case "coordinator-records" -> CoordinatorRecords.print(a.positional);
            case "engine" -> EngineRuns.one(a);
            case "engine-all" -> EngineRuns.all(a);
            case "engine-bench" -> EngineBench.run(a);
            default -> {
                System.err.println("verbs: build, cases, fleet, clean, clean-all, clean-many, select, recover, recover-all, retain, dump, compressed, bench, engine, engine-all, engine-bench, coordinator-records; see README.md");
                System.exit(2);
            }
        }
        System.exit(0); // Kafka's classes leave threads behind
    }

    /** What follows the verb: names, --option VALUE, and any number of --config NAME=VALUE. */
    static final class Arguments {
        final List<String> positional = new ArrayList<>();
        final Map<String, String> options = new HashMap<>();
        final Map<String, String> config = new TreeMap<>();

        Arguments(String[] args) {
            for (int i = 1; i < args.length; i++) {
                if (!args[i].startsWith("--")) positional.add(args[i]);
                else if (args[i].equals("--config")) {
                    String[] kv = args[++i].split("=", 2);
                    config.put(kv[0], kv[1]);
                } else options.put(args[i].substring(2), args[++i]);
            }
        }

        long number(String name, long otherwise) {
            return options.containsKey(name) ? Long.parseLong(options.get(name)) : otherwise;
        }
    }
}
