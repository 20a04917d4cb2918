import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** A line of JSON in, a line of JSON out, until the input ends: a broker's log manager from start to stop, again and again. */
public final class Histories {
    static final ObjectMapper JSON = new ObjectMapper();
    private static Session session; // null: no broker runs

    private Histories() { }

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            out.println(answer(JSON.readTree(line)));
            out.flush();
        }
        System.exit(0); // Kafka's classes leave threads behind
    }

    private static ObjectNode answer(JsonNode asked) {
        try {
            return switch (asked.get("ask").asText()) {
                case "start" -> (session = new Session(asked)).opened();
                case "turn" -> session.turn(asked);
                case "view" -> session.view();
                case "stop" -> stop(asked.get("clean").asBoolean());
                case "look" -> View.ofDirectories(asked);
                default -> throw new IllegalArgumentException("nobody knows " + asked.get("ask"));
            };
        } catch (Throwable e) { // an InternalError is an answer too
            if (System.getenv("HISTORIES_TRACE") != null) e.printStackTrace();
            return JSON.createObjectNode().put("error", told(e));
        }
    }

    private static ObjectNode stop(boolean clean) throws Exception {
        Session stopping = session;
        session = null;
        stopping.end(clean);
        return JSON.createObjectNode();
    }

    static String told(Throwable e) {
        String cause = e.getCause() == null ? "" : " by " + e.getCause();
        return e + cause;
    }
}
