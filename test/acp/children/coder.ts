/** A server of the coder with a scripted model: `node coder.ts DATABASE`. */
import { NodeRuntime, NodeStdio } from "@effect/platform-node"
import { Layer } from "effect"
import { AcpServer } from "effect-deepagents/acp"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { coder, models, reviewer } from "../agents.ts"

const [, , database = ""] = process.argv

const main = AcpServer.layer({ agents: { coder, reviewer } }).pipe(
  Layer.provide([NodeStdio.layer, SqliteSessions.layer({ file: database }), models]),
  Layer.launch
)

NodeRuntime.runMain(main)
