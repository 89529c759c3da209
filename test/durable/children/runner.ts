import { existsSync } from "node:fs"
/** One runner of the cluster: `argv` is the database, the port and the folder. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { AgentEntity, Cron, DurableAgent } from "effect-deepagents/durable"
import * as Times from "effect/Cron"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
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
