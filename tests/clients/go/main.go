// Command members runs members of consumer groups. Each member uses the Go client that its command names.
//
// Each line of standard input is "join NAME=VALUE ..." or "leave CLIENT_ID", see tests/clients/members.py. The program ends
// when its input ends.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"
)

type joining map[string]string

func (j joining) topics() []string {
	return strings.Split(j["topics"], ",")
}

func (j joining) duration(name string) time.Duration {
	milliseconds, err := strconv.Atoi(j[name])
	if err != nil {
		panic(fmt.Sprintf("%s is %q, not a number", name, j[name]))
	}
	return time.Duration(milliseconds) * time.Millisecond
}

// member is a running client. Calling leave ends it. The channel left is closed when it has ended.
type member struct {
	leave context.CancelFunc
	left  chan struct{}
}

var clients = map[string]func(context.Context, joining) error{
	"sarama":   consumeWithSarama,
	"franz-go": consumeWithFranzGo,
	"kafka-go": consumeWithKafkaGo,
}

func main() {
	members := map[string]member{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if words[0] == "leave" {
			members[words[1]].leave()
			continue
		}
		given := joining{}
		for _, word := range words[1:] {
			name, value, _ := strings.Cut(word, "=")
			given[name] = value
		}
		members[given["client_id"]] = join(given, members[given["client_id"]])
	}
}

// join starts a member after the previous member with the same client id has left.
func join(given joining, before member) member {
	ctx, leave := context.WithCancel(context.Background())
	joined := member{leave, make(chan struct{})}
	go func() {
		defer close(joined.left)
		if before.left != nil {
			<-before.left
		}
		if err := clients[given["library"]](ctx, given); err != nil {
			log.Print(given["client_id"], " ended: ", err)
		}
	}()
	return joined
}
