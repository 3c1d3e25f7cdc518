package main

import (
	"context"
	"log"

	"github.com/twmb/franz-go/pkg/kgo"
)

var franzGoStrategies = map[string]func() kgo.GroupBalancer{
	"range":              kgo.RangeBalancer,
	"roundrobin":         kgo.RoundRobinBalancer,
	"sticky":             kgo.StickyBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

func consumeWithFranzGo(ctx context.Context, given joining) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(given["bootstrap_servers"]),
		kgo.ClientID(given["client_id"]),
		kgo.ConsumerGroup(given["group_id"]),
		kgo.ConsumeTopics(given.topics()...),
		kgo.Balancers(franzGoStrategies[given["strategy"]]()),
		kgo.SessionTimeout(given.duration("session_timeout_ms")),
		kgo.HeartbeatInterval(given.duration("heartbeat_interval_ms")),
		kgo.MetadataMaxAge(given.duration("metadata_max_age_ms")),
		kgo.MetadataMinAge(given.duration("metadata_max_age_ms") / 2),
		kgo.AutoCommitInterval(given.duration("commit_interval_ms")),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if instance := given["instance_id"]; instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	for ctx.Err() == nil { // A poll marks the records of the previous poll as done.
		for _, failure := range client.PollFetches(ctx).Errors() {
			if ctx.Err() == nil {
				log.Print(failure)
			}
		}
	}
	client.Close()
	return nil
}
