// Kafka's own classes as the oracle of the decoder tests. Run as a single file with Kafka's jars on the classpath:
//   java -cp 'JARS' KafkaOracle.java version                 which Kafka and Java answer here
//   java -cp 'JARS' KafkaOracle.java schemas             the facts of the official message definitions, one JSON line a message
//   java -cp 'JARS' KafkaOracle.java generate SEED N     N random records of every type and version, serialised by Kafka
//   java -cp 'JARS' KafkaOracle.java decode < INPUTS     what Kafka reads in each input line
//   java -cp 'JARS' KafkaOracle.java utf8                digest of new String(bytes, UTF_8) over every sequence of edge bytes
// An input line is {"key": base64, "value": base64|null} or {"subscription"|"assignment"|"stickyUserData": base64}.

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ConsumerProtocolAssignment;
import org.apache.kafka.common.message.ConsumerProtocolAssignmentJsonConverter;
import org.apache.kafka.common.message.ConsumerProtocolSubscription;
import org.apache.kafka.common.message.ConsumerProtocolSubscriptionJsonConverter;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters;
import org.apache.kafka.coordinator.group.generated.CoordinatorRecordType;

public final class KafkaOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper().configure(JsonParser.Feature.ALLOW_COMMENTS, true);
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();
    private static final int[] LENGTHS = {0, 0, 1, 1, 3, 8, 8, 20, 20, 36, 126, 127, 128, 300};
    private static final int[] COUNTS = {0, 0, 1, 1, 2, 3, 3, 5};
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "version" -> print(MAPPER.createObjectNode()
                .put("kafka", AppInfoParser.getVersion()).put("java", System.getProperty("java.version")));
            case "schemas" -> schemas();
            case "generate" -> generate(new Random(Long.parseLong(args[1])), Integer.parseInt(args[2]));
            case "decode" -> decode();
            case "utf8" -> utf8();
            default -> throw new IllegalArgumentException(args[0]);
        }
        OUT.flush();
    }

    private static String base64(byte[] raw) {
        return Base64.getEncoder().encodeToString(raw);
    }

    private static String recordName(ApiMessage key) {
        return key.getClass().getSimpleName().replaceAll("Key$", "");
    }

    // decode

    private static void decode() throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode input = MAPPER.readTree(line);
            ObjectNode answer;
            try {
                answer = input.has("key") ? record(input) : embedded(input);
            } catch (RuntimeException refusal) {
                answer = MAPPER.createObjectNode().put("error", String.valueOf(refusal.getMessage()));
            }
            OUT.print(MAPPER.writeValueAsString(answer));
            OUT.print('\n');
        }
    }

    private static ObjectNode record(JsonNode input) throws Exception {
        ByteBuffer key = ByteBuffer.wrap(input.get("key").binaryValue());
        JsonNode value = input.get("value");
        CoordinatorRecord record = SERDE.deserialize(key, value.isNull() ? null : ByteBuffer.wrap(value.binaryValue()));
        ObjectNode answer = MAPPER.createObjectNode();
        answer.put("record", recordName(record.key()));
        answer.set("key", CoordinatorRecordJsonConverters.writeRecordKeyAsJson(record.key()));
        answer.set("value", record.value() == null ? MAPPER.nullNode()
            : CoordinatorRecordJsonConverters.writeRecordValueAsJson(record.value().message(), record.value().version()));
        return answer;
    }

    private static ObjectNode embedded(JsonNode input) throws Exception {
        ObjectNode answer = MAPPER.createObjectNode();
        if (input.has("subscription")) {
            ByteBuffer raw = ByteBuffer.wrap(input.get("subscription").binaryValue());
            short version = ConsumerProtocol.deserializeVersion(raw);
            answer.set("fields", ConsumerProtocolSubscriptionJsonConverter.write(
                ConsumerProtocol.deserializeConsumerProtocolSubscription(raw, version), (short) Math.min(version, 3)));
            return answer.put("version", version);
        }
        if (input.has("assignment")) {
            ByteBuffer raw = ByteBuffer.wrap(input.get("assignment").binaryValue());
            short version = ConsumerProtocol.deserializeVersion(raw);
            answer.set("fields", ConsumerProtocolAssignmentJsonConverter.write(
                ConsumerProtocol.deserializeConsumerProtocolAssignment(raw, version), (short) Math.min(version, 3)));
            return answer.put("version", version);
        }
        return sticky(input.get("stickyUserData").binaryValue(), answer);
    }

    @SuppressWarnings("unchecked")
    private static ObjectNode sticky(byte[] raw, ObjectNode answer) throws Exception {
        Method read = StickyAssignor.class.getDeclaredMethod("memberData", Subscription.class);
        read.setAccessible(true);
        Object memberData = read.invoke(new StickyAssignor(), new Subscription(List.of(), ByteBuffer.wrap(raw)));
        ArrayNode owned = answer.putArray("owned");
        for (TopicPartition one : (List<TopicPartition>) field(memberData, "partitions")) {
            owned.addArray().add(one.topic()).add(one.partition());
        }
        Optional<Integer> generation = (Optional<Integer>) field(memberData, "generation");
        answer.set("generation", generation.isPresent() ? MAPPER.getNodeFactory().numberNode(generation.get()) : MAPPER.nullNode());
        return answer;
    }

    private static Object field(Object owner, String name) throws Exception {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    // utf8

    /** Digest the text of every sequence of 1 to 4 of these bytes, shortest first, each followed by a line feed. */
    private static void utf8() throws Exception {
        byte[] edges = HexFormat.of().parseHex("00417f808f909fa0bfc0c1c2dfe0e1edeeeff0f1f3f4f5f8ff");
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (int length = 1; length <= 4; length++) {
            for (int number = 0; number < Math.pow(edges.length, length); number++) {
                byte[] raw = new byte[length];
                for (int i = length - 1, rest = number; i >= 0; i--, rest /= edges.length) raw[i] = edges[rest % edges.length];
                digest.update(new String(raw, StandardCharsets.UTF_8).getBytes(StandardCharsets.UTF_8));
                digest.update((byte) '\n');
            }
        }
        print(MAPPER.createObjectNode().put("edges", HexFormat.of().formatHex(edges))
            .put("sha256", HexFormat.of().formatHex(digest.digest())));
    }

    // schemas

    private static JsonNode schema(String name) throws Exception {
        return MAPPER.readTree(KafkaOracle.class.getClassLoader().getResourceAsStream("common/message/" + name + ".json"));
    }

    private static void schemas() throws Exception {
        for (CoordinatorRecordType type : CoordinatorRecordType.values()) {
            String name = recordName(type.newRecordKey());
            print(facts(schema(name + "Key")).put("keyType", type.id()));
            print(facts(schema(name + "Value")).put("keyType", type.id()));
        }
        for (String name : List.of("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")) print(facts(schema(name)));
    }

    private static ObjectNode facts(JsonNode schema) {
        ObjectNode facts = MAPPER.createObjectNode().put("name", schema.get("name").asText());
        facts.put("validVersions", schema.get("validVersions").asText());
        facts.put("flexibleVersions", schema.get("flexibleVersions").asText());
        facts.set("fields", fieldFacts(schema.get("fields"), schema));
        return facts;
    }

    private static ArrayNode fieldFacts(JsonNode fields, JsonNode schema) {
        ArrayNode all = MAPPER.createArrayNode();
        for (JsonNode field : fields) {
            ObjectNode one = all.addObject();
            for (String fact : List.of("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default")) {
                if (field.has(fact)) one.set(fact, field.get(fact));
            }
            JsonNode nested = nested(field, schema);
            if (nested != null) one.set("fields", fieldFacts(nested, schema));
        }
        return all;
    }

    /** The fields of a field's struct, defined in place or among the message's common structs; null for other types. */
    private static JsonNode nested(JsonNode field, JsonNode schema) {
        if (field.has("fields")) return field.get("fields");
        String type = field.get("type").asText().replace("[]", "");
        for (JsonNode common : schema.path("commonStructs")) {
            if (common.get("name").asText().equals(type)) return common.get("fields");
        }
        return null;
    }

    // generate

    private static void generate(Random random, int each) throws Exception {
        for (CoordinatorRecordType type : CoordinatorRecordType.values()) {
            String name = recordName(type.newRecordKey());
            for (short version = type.lowestSupportedVersion(); version <= type.highestSupportedVersion(); version++) {
                for (int i = 0; i < each; i++) print(randomRecord(random, type.id(), name, version));
            }
            print(randomRecord(random, type.id(), name, (short) -1));
        }
        for (short version = 0; version <= 3; version++) {
            for (int i = 0; i < each; i++) {
                print(MAPPER.createObjectNode().put("subscription", base64(randomSubscription(random, version))));
                print(MAPPER.createObjectNode().put("assignment", base64(randomAssignment(random, version))));
            }
        }
        for (int i = 0; i < each; i++) {
            print(MAPPER.createObjectNode().put("stickyUserData", base64(randomSticky(random, true))));
            print(MAPPER.createObjectNode().put("stickyUserData", base64(randomSticky(random, false))));
        }
    }

    private static void print(JsonNode line) throws Exception {
        OUT.print(MAPPER.writeValueAsString(line));
        OUT.print('\n');
    }

    /** A record of the given value version; version -1 is a tombstone. */
    private static ObjectNode randomRecord(Random random, short type, String name, short version) throws Exception {
        JsonNode keySchema = schema(name + "Key");
        JsonNode key = randomStruct(random, keySchema.get("fields"), keySchema, 0);
        ApiMessage keyMessage = CoordinatorRecordJsonConverters.readRecordKeyFromJson(key, type);
        byte[] rawKey = MessageUtil.toVersionPrefixedBytes(type, keyMessage);
        ObjectNode record = MAPPER.createObjectNode().put("key", base64(rawKey));
        if (version < 0) return record.putNull("value");
        JsonNode valueSchema = schema(name + "Value");
        ObjectNode value = randomStruct(random, valueSchema.get("fields"), valueSchema, version);
        if (name.equals("GroupMetadata") && random.nextInt(4) > 0) speakConsumerProtocol(random, value);
        ApiMessage message = CoordinatorRecordJsonConverters.readRecordValueFromJson(value, type, version);
        return record.put("value", base64(MessageUtil.toVersionPrefixedBytes(version, message)));
    }

    private static void speakConsumerProtocol(Random random, ObjectNode value) throws Exception {
        value.put("protocolType", "consumer");
        for (JsonNode member : value.get("members")) {
            ((ObjectNode) member).put("subscription", randomSubscription(random, (short) random.nextInt(4)));
            ((ObjectNode) member).put("assignment", randomAssignment(random, (short) random.nextInt(4)));
        }
    }

    private static byte[] randomSubscription(Random random, short version) throws Exception {
        JsonNode schema = schema("ConsumerProtocolSubscription");
        ObjectNode fields = randomStruct(random, schema.get("fields"), schema, version);
        if (random.nextBoolean()) fields.put("userData", randomSticky(random, random.nextBoolean()));
        ConsumerProtocolSubscription message = ConsumerProtocolSubscriptionJsonConverter.read(fields, version);
        return MessageUtil.toVersionPrefixedBytes(version, message);
    }

    private static byte[] randomAssignment(Random random, short version) throws Exception {
        JsonNode schema = schema("ConsumerProtocolAssignment");
        ObjectNode fields = randomStruct(random, schema.get("fields"), schema, version);
        ConsumerProtocolAssignment message = ConsumerProtocolAssignmentJsonConverter.read(fields, version);
        return MessageUtil.toVersionPrefixedBytes(version, message);
    }

    /** User data as StickyAssignor writes it today (version 1) or before it knew generations (version 0, cut behind the array). */
    private static byte[] randomSticky(Random random, boolean withGeneration) throws Exception {
        List<TopicPartition> owned = new ArrayList<>();
        int count = pick(random, COUNTS);
        for (int i = 0; i < count; i++) owned.add(new TopicPartition(randomString(random), random.nextInt(50)));
        Class<?> memberData = Class.forName("org.apache.kafka.clients.consumer.internals.AbstractStickyAssignor$MemberData");
        var make = memberData.getDeclaredConstructor(List.class, Optional.class);
        make.setAccessible(true);
        Method write = StickyAssignor.class.getDeclaredMethod("serializeTopicPartitionAssignment", memberData);
        write.setAccessible(true);
        ByteBuffer raw = (ByteBuffer) write.invoke(null, make.newInstance(owned, Optional.of(random.nextInt(9))));
        byte[] bytes = new byte[withGeneration ? raw.remaining() : raw.remaining() - Integer.BYTES];
        raw.get(bytes);
        return bytes;
    }

    private static ObjectNode randomStruct(Random random, JsonNode fields, JsonNode schema, int version) throws Exception {
        ObjectNode struct = MAPPER.createObjectNode();
        for (JsonNode field : fields) {
            boolean present = !field.has("versions") || holds(field.get("versions").asText(), version);
            boolean tagged = field.has("tag");
            if (!present || tagged && random.nextInt(3) == 0) continue;
            String name = field.get("name").asText();
            String camelCase = name.substring(0, 1).toLowerCase() + name.substring(1);
            boolean nullable = field.has("nullableVersions") && holds(field.get("nullableVersions").asText(), version);
            if (nullable && random.nextInt(3) == 0) struct.putNull(camelCase);
            else struct.set(camelCase, randomValue(random, field, schema, version));
        }
        return struct;
    }

    private static boolean holds(String versions, int version) {
        if (versions.endsWith("+")) return version >= Integer.parseInt(versions.substring(0, versions.length() - 1));
        String[] ends = versions.split("-");
        return version >= Integer.parseInt(ends[0]) && version <= Integer.parseInt(ends[ends.length - 1]);
    }

    private static JsonNode randomValue(Random random, JsonNode field, JsonNode schema, int version) throws Exception {
        String type = field.get("type").asText();
        if (!type.startsWith("[]")) return randomElement(random, type, nested(field, schema), schema, version);
        ArrayNode array = MAPPER.createArrayNode();
        boolean many = type.startsWith("[]int") && random.nextInt(20) == 0;
        int count = many ? 130 + random.nextInt(200) : pick(random, COUNTS);
        for (int i = 0; i < count; i++) {
            array.add(randomElement(random, type.substring(2), nested(field, schema), schema, version));
        }
        return array;
    }

    private static JsonNode randomElement(Random random, String type, JsonNode nested, JsonNode schema, int version) throws Exception {
        var nodes = MAPPER.getNodeFactory();
        return switch (type) {
            case "int8" -> nodes.numberNode((byte) random.nextInt());
            case "int16" -> nodes.numberNode((short) random.nextInt());
            case "uint16" -> nodes.numberNode(random.nextInt(65536));
            case "int32" -> nodes.numberNode(random.nextInt(3) == 0 ? random.nextInt() : random.nextInt(50));
            case "int64" -> nodes.numberNode(random.nextInt(3) == 0 ? random.nextLong() : random.nextInt(50) - 1);
            case "uuid" -> nodes.textNode((random.nextInt(4) == 0 ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong())).toString());
            case "string" -> nodes.textNode(randomString(random));
            case "bytes" -> nodes.binaryNode(randomString(random).getBytes(StandardCharsets.UTF_8));
            default -> randomStruct(random, nested, schema, version);
        };
    }

    private static String randomString(Random random) {
        int length = pick(random, LENGTHS);
        StringBuilder text = new StringBuilder();
        while (text.toString().getBytes(StandardCharsets.UTF_8).length < length) {
            int kind = random.nextInt(40);
            text.appendCodePoint(kind == 0 ? 0x1F98A : kind == 1 ? 0x2028 : kind == 2 ? 0xE9 : 'a' + random.nextInt(26));
        }
        return text.toString();
    }

    private static int pick(Random random, int[] choices) {
        return choices[random.nextInt(choices.length)];
    }
}
