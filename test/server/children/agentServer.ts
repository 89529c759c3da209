/**
 * A server on standard input and output, with a tool that prints wherever it can.
 */
import { NodeRuntime, NodeStdio } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Tool } from "effect-deepagents"
import { McpAgent } from "effect-deepagents/server"

const chatty = Tool.make("chatty", {
  description: "Prints",
  parameters: {},
  execute: () =>
    Effect.gen(function* () {
      yield* Effect.log("by a log")
      yield* Console.log("by the console of Effect")
      console.log("by console.log")
      console.info("by console.info")
      console.debug("by console.debug")
      console.dir({ by: "console.dir" }, { depth: 0 })
      console.dirxml("by console.dirxml")
      console.table([{ by: "console.table" }])
      console.group("by console.group")
      console.count("by console.count")
      console.time("by console.time")
      console.timeEnd("by console.time")
      return "printed"
    })
})

const server = McpAgent.layerStdio({ name: "chatty", version: "1.0.0", tools: [chatty] })

NodeRuntime.runMain(Layer.launch(Layer.provide(server, NodeStdio.layer)))
