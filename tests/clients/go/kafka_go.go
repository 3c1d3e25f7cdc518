package main

import (
	"context"
	"errors"
	"log"

	"github.com/segmentio/kafka-go"
)

var kafkaGoStrategies = map[string]kafka.GroupBalancer{
	"range":         kafka.RangeGroupBalancer{},
	"roundrobin":    kafka.RoundRobinGroupBalancer{},
	"rack-affinity": kafka.RackAffinityGroupBalancer{Rack: "a-rack"},
}

func consumeWithKafkaGo(ctx context.Context, given joining) error {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:                []string{given["bootstrap_servers"]},
		GroupID:                given["group_id"],
		GroupTopics:            given.topics(),
		Dialer:                 &kafka.Dialer{ClientID: given["client_id"], DualStack: true},
		GroupBalancers:         []kafka.GroupBalancer{kafkaGoStrategies[given["strategy"]]},
		SessionTimeout:         given.duration("session_timeout_ms"),
		HeartbeatInterval:      given.duration("heartbeat_interval_ms"),
		WatchPartitionChanges:  true,
		PartitionWatchInterval: given.duration("metadata_max_age_ms"),
		CommitInterval:         given.duration("commit_interval_ms"),
		StartOffset:            kafka.FirstOffset,
		MaxWait:                given.duration("commit_interval_ms"),
		ErrorLogger:            kafka.LoggerFunc(log.Printf),
	})
	for {
		_, err := reader.ReadMessage(ctx)
		var answered kafka.Error
		if errors.As(err, &answered) && answered.Temporary() {
			continue // for example, a new topic has no leader yet
		}
		if err != nil {
			closed := reader.Close()
			if errors.Is(err, context.Canceled) {
				return closed
			}
			return err
		}
	}
}
