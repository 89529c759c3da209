/**
 * A chat with a scripted model, in the terminal that it is started in: `node chat.ts <folder> <thread> [--resume]
 * [--plain] [--mode=…]`. Its files are in `<folder>/files`, its conversations in `<folder>/sessions.db`.
 */
import { mkdirSync } from "node:fs"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { FileTools } from "effect-deepagents/backends"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { DeepAgent } from "effect-deepagents/deep"
import { AskUser } from "effect-deepagents/middleware"
import * as FileCheckpoints from "effect-deepagents/sessions/FileCheckpoints"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { makePermits } from "../../../src/cli/internal/approvals/permits.ts"
import { chat } from "../../../src/cli/internal/chat/open.ts"
import type { Mode } from "../../../src/cli/internal/chat/options.ts"
import { hold } from "../../../src/cli/internal/work/hold.ts"
import { turn } from "./script.ts"

const [folder = ".", threadId = "test", ...flags] = process.argv.slice(2)
mkdirSync(`${folder}/files`, { recursive: true })

const agent = DeepAgent.make({
  name: "tester",
  prompt: "You are tested.",
  files: ["ls", "read_file", "write_file", "edit_file", "glob", "grep"],
  execute: true,
  middleware: [AskUser.make()],
  approvals: { tools: { write_file: true, edit_file: true, execute: true } }
})

const mode = flags.find((flag) => flag.startsWith("--mode="))?.slice(7) as Mode | undefined

const checkpoints = FileCheckpoints.layer({
  folders: [`${folder}/files`],
  file: `${folder}/checkpoints.db`,
  locate: (path) => `${folder}/files/${path}`
})

const program = Effect.flatMap(FileCheckpoints.FileCheckpoints, (kept) =>
  chat({
    checkpoints: kept,
    threadId,
    setup: { agent, name: "tester", model: "scripted" },
    models: Effect.succeed([{ name: "other:one" }]),
    choose: ({ model = "scripted" }) => Effect.succeed({ agent, name: "tester", model }),
    resumes: flags.includes("--resume"),
    plain: flags.includes("--plain"),
    mode,
    permits: makePermits(`${folder}/files`, FileTools.make({ execute: true })),
    folder,
    history: `${folder}/history`,
    draft: `${folder}/draft`,
    hold: (id) => Effect.provide(hold({ data: folder, config: folder, project: folder }, id), NodeServices.layer),
    resumeCommand: (id) => `deepagents resume ${id}`
  })
).pipe(
  Effect.provide(Layer.orDie(checkpoints)),
  Effect.provide(TestChatModel.reactive(turn)),
  Effect.provide(Layer.orDie(LocalShell.layer({ root: `${folder}/files` }))),
  Effect.provide(Layer.orDie(SqliteSessions.layer({ file: `${folder}/sessions.db` }))),
  Effect.provide(NodeServices.layer),
  Effect.asVoid
)

NodeRuntime.runMain(program)
