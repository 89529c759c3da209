import { existsSync } from "node:fs"
/** One runner of the cluster: `argv` is the database, the port and the folder. */
import { NodeRuntime } from "@effect/platform-node"
import { Cron as Times, DateTime, Effect, Layer } from "effect"
import { AgentEntity, Cron, DurableAgent } from "effect-deepagents/durable"
import { clerk, guard, officer, teller } from "./agents.ts"
import { cluster } from "./cluster.ts"

const [url = "", port = "", folder = ""] = process.argv.slice(2)

const times = Cron.layer(teller(folder), {
  name: "each second",
  cron: Times.parseUnsafe("* * * * * *", "UTC"),
  threadId: "cron",
  input: (at) => `say ${DateTime.toEpochMillis(at)}`,
  missed: "all"
})

const agents = Layer.mergeAll(
  AgentEntity.layer(teller(folder)),
  AgentEntity.layer(guard(folder)),
  DurableAgent.layer(clerk(folder)),
  DurableAgent.layer(officer(folder)),
  existsSync(`${folder}/cron`) ? times : Layer.empty
)

NodeRuntime.runMain(
  Layer.launch(
    Layer.merge(agents, Layer.effectDiscard(Effect.sync(() => process.stdout.write("ready\n")))).pipe(
      Layer.provide(cluster(url, Number(port)))
    )
  )
)
