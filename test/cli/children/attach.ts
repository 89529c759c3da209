/** The program with the command `attach` alone: `node attach.ts attach <url> [thread]`. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect } from "effect"
import * as Command from "effect/cli/Command"
import { attach } from "../../../src/cli/internal/attach/tree.ts"
import { root } from "../../../src/cli/internal/commands/root.ts"

const program = Command.run(root.pipe(Command.withSubcommands([attach])), { version: "0.0.0" }).pipe(
  Effect.tapError(({ message }) => Effect.sync(() => process.stderr.write(`${message}\n`))),
  Effect.provide(NodeServices.layer)
)

NodeRuntime.runMain(program, { disableErrorReporting: true })
