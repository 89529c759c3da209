/** Commands inside of slash commands: they run after the same approval as the agent's own. */
import { randomUUID } from "node:crypto"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type * as Approval from "../../../core/Approval.ts"
import { Sandbox } from "../../../core/Sandbox.ts"
import { clean } from "../../../support/text/clean.ts"
import { cutMiddle } from "../../../support/text/text.ts"
import type { RunCommand } from "./options.ts"

/** The most characters of output in the message. */
const most = 20_000

/** Makes the runner of commands. `decide` is the way in which the chat decides on calls. */
export const makeRunCommand =
  (decide: (request: Approval.Request) => Effect.Effect<Approval.Decision>): RunCommand =>
  (command) =>
    Effect.gen(function* () {
      const sandbox = yield* Effect.serviceOption(Sandbox)
      if (Option.isNone(sandbox)) return `[${command} was not run: this agent has no shell]`
      const id = randomUUID()
      const decision = yield* decide({
        id,
        runId: "",
        callId: id,
        path: [],
        toolName: "execute",
        arguments: { command },
        description: command,
        allow: ["approve", "reject"],
        at: yield* Clock.currentTimeMillis
      })
      if (decision._tag !== "Approve") {
        const reason = decision._tag === "Reject" ? decision.reason : undefined
        return `[${command} was not run${reason === undefined ? "" : `: ${reason}`}]`
      }
      let output = ""
      let exitCode = 0
      yield* Stream.runForEach(sandbox.value.executeStream(command), (event) =>
        Effect.sync(() => {
          if (event._tag === "Exited") exitCode = event.exitCode
          else output = cutMiddle(output + event.text, most, () => "\n…\n")
        })
      ).pipe(Effect.mapError(({ message }) => ({ message })))
      const text = clean(output).trimEnd()
      return exitCode === 0 ? text : `${text}\n[exit code ${exitCode}]`
    })
