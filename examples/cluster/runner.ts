/** A runner: a process that has some of the threads. Start as many as there is work for. */
import { NodeRuntime } from "@effect/platform-node"
import { Layer } from "effect"
import { AgentEntity } from "effect-deepagents/durable"
import { cluster, shop } from "./agent.ts"

const [url = "", port = ""] = process.argv.slice(2)

NodeRuntime.runMain(Layer.launch(AgentEntity.layer(shop).pipe(Layer.provide(cluster(url, Number(port))))))
