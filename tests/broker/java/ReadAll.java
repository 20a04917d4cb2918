import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** ReadAll BOOTSTRAP TOPIC RECORDS TIMES: reads a partition from its start, and says for each time the seconds by the
 *  clock, the seconds of processor time, and the records. */
public class ReadAll {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", "5000");
        settings.put("fetch.max.bytes", "104857600");
        settings.put("max.partition.fetch.bytes", "10485760");
        settings.put("receive.buffer.bytes", "2097152");
        TopicPartition partition = new TopicPartition(arguments[1], 0);
        long wanted = Long.parseLong(arguments[2]);
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        try (Consumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(partition));
            for (int time = 0; time < Integer.parseInt(arguments[3]); time++) {
                consumer.seekToBeginning(List.of(partition));
                long records = 0, bytes = 0;
                long clock = System.nanoTime(), processor = system.getProcessCpuTime();
                while (records < wanted) {
                    for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofSeconds(5))) {
                        records++;
                        bytes += each.key().length + each.value().length;
                    }
                }
                System.out.println(
                    "read " + (System.nanoTime() - clock) / 1e9 + " "
                        + (system.getProcessCpuTime() - processor) / 1e9 + " " + records + " " + bytes);
            }
        }
    }
}
