// Runs members of consumer groups with KafkaJS.
//
// Each line of standard input is "join NAME=VALUE ..." or "leave CLIENT_ID", see tests/clients/members.py. The program ends
// when its input ends.
import { createInterface } from 'node:readline'
import { Kafka, PartitionAssigners, logLevel } from 'kafkajs'

const strategies = { roundrobin: PartitionAssigners.roundRobin }

const members = new Map() // promises of consumers, by client id

async function join(given, before) {
  await before
  const kafka = new Kafka({
    clientId: given.client_id,
    brokers: [given.bootstrap_servers],
    logLevel: logLevel.INFO,
    logCreator: () => (entry) => console.error(JSON.stringify(entry)),
  })
  const consumer = kafka.consumer({
    groupId: given.group_id,
    partitionAssigners: [strategies[given.strategy]],
    sessionTimeout: Number(given.session_timeout_ms),
    heartbeatInterval: Number(given.heartbeat_interval_ms),
    metadataMaxAge: Number(given.metadata_max_age_ms),
    maxWaitTimeInMs: Number(given.commit_interval_ms),
  })
  await consumer.connect()
  await consumer.subscribe({ topics: given.topics.split(','), fromBeginning: true })
  await consumer.run({
    autoCommitInterval: Number(given.commit_interval_ms),
    eachMessage: async () => {},
  })
  return consumer
}

async function leave(member) {
  const consumer = await member
  await consumer.disconnect()
}

function pair(word) {
  const at = word.indexOf('=')
  return [word.slice(0, at), word.slice(at + 1)]
}

for await (const line of createInterface({ input: process.stdin })) {
  const [verb, ...words] = line.split(' ')
  if (verb === 'leave') {
    members.set(words[0], leave(members.get(words[0])))
  } else {
    const given = Object.fromEntries(words.map(pair))
    members.set(given.client_id, join(given, members.get(given.client_id)))
  }
}
process.exit(0)
