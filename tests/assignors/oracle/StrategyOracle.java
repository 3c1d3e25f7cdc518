// Kafka's own classes as the oracle of the strategies and of the partitioner. Run as a single file with Kafka's jars on the classpath:
//   java -cp 'JARS' StrategyOracle.java version              which Kafka and Java answer here
//   java -cp 'JARS' StrategyOracle.java assign < INPUTS      the assignment of a client strategy for each scenario
//   java -cp 'JARS' StrategyOracle.java partitions < INPUTS  the partitions of each {"key": base64, "counts": [partitions]}

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.producer.internals.BuiltInPartitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.AppInfoParser;

public final class StrategyOracle {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "version" -> print(MAPPER.createObjectNode()
                .put("kafka", AppInfoParser.getVersion()).put("java", System.getProperty("java.version")));
            case "assign" -> eachLine(StrategyOracle::assignment);
            case "partitions" -> eachLine(StrategyOracle::partitions);
            default -> throw new IllegalArgumentException(args[0]);
        }
        OUT.flush();
    }

    private interface Answer {
        JsonNode of(JsonNode input) throws Exception;
    }

    private static void eachLine(Answer answer) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) print(answer.of(MAPPER.readTree(line)));
    }

    private static void print(JsonNode line) throws Exception {
        OUT.print(MAPPER.writeValueAsString(line));
        OUT.print('\n');
    }

    /** A scenario has the form of assignors/what_if/scenario.py, without racks and instance ids. */
    private static ObjectNode assignment(JsonNode scenario) {
        List<PartitionInfo> partitions = new ArrayList<>();
        for (var topic : scenario.get("partitions").properties()) {
            for (int number = 0; number < topic.getValue().asInt(); number++) {
                partitions.add(new PartitionInfo(topic.getKey(), number, Node.noNode(), new Node[0], new Node[0]));
            }
        }
        Map<String, Subscription> subscriptions = new HashMap<>();
        for (JsonNode member : scenario.get("members")) {
            subscriptions.put(member.get("member_id").asText(), subscription(member, assignorNamed(scenario)));
        }
        Cluster cluster = new Cluster("c", List.of(), partitions, Set.of(), Set.of());
        var assigned = assignorNamed(scenario).assign(cluster, new GroupSubscription(subscriptions)).groupAssignment();
        ObjectNode answer = MAPPER.createObjectNode();
        for (String memberId : new TreeSet<>(assigned.keySet())) {
            ArrayNode owned = answer.putArray(memberId);
            for (TopicPartition one : assigned.get(memberId).partitions()) owned.addArray().add(one.topic()).add(one.partition());
        }
        return answer;
    }

    /** The subscription that a member sends after it got the partitions that it owns. Each member has an assignor of its own. */
    @SuppressWarnings("removal")
    private static Subscription subscription(JsonNode member, ConsumerPartitionAssignor assignor) {
        List<String> topics = new ArrayList<>();
        member.get("topics").forEach(topic -> topics.add(topic.asText()));
        List<TopicPartition> owned = new ArrayList<>();
        member.path("owned").forEach(one -> owned.add(new TopicPartition(one.get(0).asText(), one.get(1).asInt())));
        int generation = member.path("generation").asInt(-1);
        if (generation >= 0) {
            var metadata = new ConsumerGroupMetadata("g", generation, member.get("member_id").asText(), Optional.empty());
            assignor.onAssignment(new Assignment(owned), metadata);
        }
        ByteBuffer userData = assignor.subscriptionUserData(new TreeSet<>(topics));
        return new Subscription(topics, userData, owned, generation, Optional.empty());
    }

    private static ConsumerPartitionAssignor assignorNamed(JsonNode scenario) {
        return switch (scenario.get("strategy").asText()) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> throw new IllegalArgumentException(scenario.get("strategy").asText());
        };
    }

    private static ArrayNode partitions(JsonNode input) throws Exception {
        ArrayNode numbers = MAPPER.createArrayNode();
        for (JsonNode count : input.get("counts")) {
            numbers.add(BuiltInPartitioner.partitionForKey(input.get("key").binaryValue(), count.asInt()));
        }
        return numbers;
    }
}
