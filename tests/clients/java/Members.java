import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;

/**
 * Runs members of consumer groups with the version of the Java client that is on the class path.
 *
 * <p>Each line of standard input is "join NAME=VALUE ..." or "leave CLIENT_ID", see tests/clients/members.py. The program
 * ends when its input ends.
 */
public final class Members {
    private static final String BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer";
    private static final Map<String, String> ASSIGNORS = Map.of(
            "range", "RangeAssignor",
            "roundrobin", "RoundRobinAssignor",
            "sticky", "StickyAssignor",
            "cooperative-sticky", "CooperativeStickyAssignor");

    private Members() {}

    public static void main(String[] arguments) throws IOException {
        Map<String, Member> members = new HashMap<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("leave")) {
                members.get(words[1]).leaving = true;
                continue;
            }
            Properties given = new Properties();
            for (String word : Arrays.asList(words).subList(1, words.length)) {
                String[] pair = word.split("=", 2);
                given.setProperty(pair[0], pair[1]);
            }
            String clientId = given.getProperty("client_id");
            Member member = new Member(given, members.get(clientId));
            members.put(clientId, member);
            member.setDaemon(true);
            member.start();
        }
    }

    /** Consumes until it must leave. Starts after the previous member with the same client id has left. */
    private static final class Member extends Thread {
        private final Properties given;
        private final Member before;
        private volatile boolean leaving;

        Member(Properties given, Member before) {
            super(given.getProperty("client_id"));
            this.given = given;
            this.before = before;
        }

        @Override
        public void run() {
            try {
                if (before != null) {
                    before.join();
                }
            } catch (InterruptedException never) {
                return;
            }
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(configuration(given))) {
                consumer.subscribe(Arrays.asList(given.getProperty("topics").split(",")));
                while (!leaving) {
                    consumer.poll(Duration.ofMillis(300));
                }
            }
        }
    }

    private static Properties configuration(Properties given) {
        Properties configuration = new Properties();
        configuration.put("bootstrap.servers", given.getProperty("bootstrap_servers"));
        configuration.put("group.id", given.getProperty("group_id"));
        configuration.put("client.id", given.getProperty("client_id"));
        configuration.put("key.deserializer", BYTES);
        configuration.put("value.deserializer", BYTES);
        configuration.put("auto.offset.reset", "earliest");
        configuration.put("auto.commit.interval.ms", given.getProperty("commit_interval_ms"));
        configuration.put("metadata.max.age.ms", given.getProperty("metadata_max_age_ms"));
        if (given.containsKey("instance_id")) {
            configuration.put("group.instance.id", given.getProperty("instance_id"));
        }
        String strategy = given.getProperty("strategy");
        if (strategy.startsWith("consumer-")) { // KIP-848: the broker assigns and has the timeouts
            configuration.put("group.protocol", "consumer");
            configuration.put("group.remote.assignor", strategy.substring("consumer-".length()));
        } else {
            configuration.put("session.timeout.ms", given.getProperty("session_timeout_ms"));
            configuration.put("heartbeat.interval.ms", given.getProperty("heartbeat_interval_ms"));
            configuration.put(
                    "partition.assignment.strategy", "org.apache.kafka.clients.consumer." + ASSIGNORS.get(strategy));
        }
        return configuration;
    }
}
