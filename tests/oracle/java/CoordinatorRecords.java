import java.lang.reflect.*;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.protocol.*;

/** Records of the coordinators, as Kafka's own serializers and JSON converters write them: a line of JSON each. */
class CoordinatorRecords {
    private static int next = 1;

    /** names: of the generated classes, behind org.apache.kafka.coordinator. */
    static void print(List<String> names) throws Exception {
        for (String name : names) {
            Class<?> type = Class.forName("org.apache.kafka.coordinator." + name);
            ApiMessage empty = (ApiMessage) type.getConstructor().newInstance();
            for (String filled : new String[] {"empty", "filled"}) {
                for (short version = empty.lowestSupportedVersion(); version <= empty.highestSupportedVersion(); version++) {
                    next = 1;
                    ApiMessage message = (ApiMessage) type.getConstructor().newInstance();
                    if (filled.equals("filled")) fill(message, version);
                    ByteBuffer bytes;
                    try {
                        bytes = MessageUtil.toVersionPrefixedByteBuffer(version, message);
                    } catch (org.apache.kafka.common.errors.UnsupportedVersionException e) {
                        System.err.println(name + " " + version + ": " + e.getMessage());
                        continue;
                    }
                    Class<?> converter = Class.forName(type.getName() + "JsonConverter");
                    Object json = converter.getMethod("write", type, short.class).invoke(null, message, version);
                    byte[] raw = new byte[bytes.remaining()];
                    bytes.get(raw);
                    short api = (short) type.getMethod("apiKey").invoke(message);
                    System.out.println("{\"name\":\"" + name + "\",\"type\":" + api + ",\"version\":" + version + ",\"made\":\"" + filled
                        + "\",\"hex\":\"" + HexFormat.of().formatHex(raw) + "\",\"json\":" + json + "}");
                }
            }
        }
    }

    private static void fill(Object message, short version) throws Exception {
        for (Field field : message.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || field.getName().startsWith("_")) continue;
            if (field.getName().equals("next") || field.getName().equals("prev")) continue;
            field.setAccessible(true);
            if (version < 1 && Set.of("previousProducerId", "nextProducerId", "nextProducerEpoch", "clientTransactionVersion").contains(field.getName())) continue;
            field.set(message, value(field.getGenericType(), field.getName(), version));
        }
    }

    private static Object value(Type type, String name, short version) throws Exception {
        int number = next++;
        if (type == String.class) return name + "-ä" + number;
        if (type == int.class || type == Integer.class) return 1000 + number;
        if (type == long.class) return 1L << 40 | number;
        if (type == short.class || type == Short.class) return (short) (300 + number);
        if (type == byte.class) return (byte) (number % 7);
        if (type == boolean.class) return true;
        if (type == byte[].class) return new byte[] {1, (byte) 0xff, (byte) number};
        if (type == ByteBuffer.class) return ByteBuffer.wrap(new byte[] {1, (byte) 0xff, (byte) number});
        if (type == Uuid.class) return new Uuid(number, number + 1);
        if (type instanceof ParameterizedType p) {
            List<Object> list = new ArrayList<>();
            for (int i = 0; i < 2; i++) list.add(value(p.getActualTypeArguments()[0], name, version));
            return list;
        }
        Object nested = ((Class<?>) type).getConstructor().newInstance();
        fill(nested, version);
        return nested;
    }
}
