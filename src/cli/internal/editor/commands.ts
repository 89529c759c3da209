/** The slash commands of the program in an editor. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { AcpError } from "../../../acp/AcpError.ts"
import type * as AcpServer from "../../../acp/AcpServer.ts"
import * as Approval from "../../../core/Approval.ts"
import type { ChatModel } from "../../../core/ChatModel.ts"
import * as Message from "../../../core/Message.ts"
import { Sandbox, type Service as Machine } from "../../../core/Sandbox.ts"
import { type Service as Store, SessionStore } from "../../../core/SessionStore.ts"
import * as Branch from "../../../sessions/Branch.ts"
import { visible } from "../../../support/text/untrusted.ts"
import type { Command } from "../chat/options.ts"
import { makeRunCommand } from "../chat/runCommand.ts"
import type { Failure } from "../failure.ts"

const toAcp = ({ message }: { readonly message: string }) => new AcpError({ reason: "Refused", detail: message })

const notAllowed = "the person at the editor did not allow it"

/** Decides on a command that a command file runs: by the rules and the mode, or by the person. */
const decideWith = (gate: AcpServer.Gate, ask: AcpServer.Ask) => (request: Approval.Request) =>
  Effect.flatMap(gate.decide(request), (decision) =>
    decision === undefined
      ? Effect.map(
          ask({
            title: visible(request.description),
            text: `A command file runs:\n\n${visible(request.description)}`,
            options: [
              { id: "once", name: "Allow", kind: "allow_once" },
              { id: "reject", name: "Reject", kind: "reject_once" }
            ]
          }),
          (chosen) => (chosen === "once" ? Approval.approve(request) : Approval.reject(request, notAllowed))
        )
      : Effect.succeed(decision)
  )

/** A command of the chat as an editor runs it. */
export const toEditor = (command: Command, gate: AcpServer.Gate, machine: Machine): AcpServer.Command => ({
  name: command.name,
  description: command.description,
  argument: command.argument,
  run: (argument, ask) => {
    const runCommand = makeRunCommand(decideWith(gate, ask))
    const run = command.run(
      argument,
      () => {},
      (line) => Effect.provideService(runCommand(line), Sandbox, machine)
    )
    return run.pipe(
      Effect.mapError(toAcp),
      Effect.map((said): AcpServer.CommandOutcome => {
        if (said._tag === "Show") return said
        const { input } = said
        return { _tag: "Send", input: typeof input === "string" ? Message.human(input) : input }
      })
    )
  }
})

/** Replaces the conversation so far with a summary. */
export const compactCommand = (
  threadId: string,
  model: Layer.Layer<ChatModel, Failure>,
  store: Store
): AcpServer.Command => ({
  name: "compact",
  description: "Replaces the conversation so far with a summary",
  run: () =>
    Branch.leave(threadId, { to: null, summarizer: Branch.summarizer }).pipe(
      Effect.provide([model, Layer.succeed(SessionStore, store)]),
      Effect.mapError(toAcp),
      Effect.map(({ summary }): AcpServer.CommandOutcome => ({
        _tag: "Show",
        markdown: summary === undefined ? "There is nothing to summarise." : Message.text(summary)
      }))
    )
})
