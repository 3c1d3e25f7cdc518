package main

import (
	"context"
	"log"
	"os"

	"github.com/IBM/sarama"
)

var saramaStrategies = map[string]func() sarama.BalanceStrategy{
	"range":              sarama.NewBalanceStrategyRange,
	"roundrobin":         sarama.NewBalanceStrategyRoundRobin,
	"sticky":             sarama.NewBalanceStrategySticky,
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}

func consumeWithSarama(ctx context.Context, given joining) error {
	sarama.Logger = log.New(os.Stderr, "", log.LstdFlags)
	config := sarama.NewConfig()
	config.ClientID = given["client_id"]
	config.Metadata.RefreshFrequency = given.duration("metadata_max_age_ms")
	config.Consumer.Group.InstanceId = given["instance_id"]
	config.Consumer.Group.Session.Timeout = given.duration("session_timeout_ms")
	config.Consumer.Group.Heartbeat.Interval = given.duration("heartbeat_interval_ms")
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{saramaStrategies[given["strategy"]]()}
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Interval = given.duration("commit_interval_ms")
	group, err := sarama.NewConsumerGroup([]string{given["bootstrap_servers"]}, given["group_id"], config)
	if err != nil {
		return err
	}
	for ctx.Err() == nil { // Consume returns at each rebalance.
		if err := group.Consume(ctx, given.topics(), marking{}); err != nil && ctx.Err() == nil {
			log.Print(err)
		}
	}
	return group.Close()
}

// marking marks each record as done when it arrives.
type marking struct{}

func (marking) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (marking) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (marking) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			session.MarkMessage(message, "")
		case <-session.Context().Done():
			return nil
		}
	}
}
