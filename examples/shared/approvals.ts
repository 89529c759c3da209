/**
 * Asks whoever sits at the terminal. Where there is none, what a scripted model wants is approved, and what a real one
 * wants is refused; either is said.
 */
import { Console, Effect, Layer, Semaphore, Stdio, Terminal } from "effect"
import { Approval } from "effect-deepagents"
import { printable } from "./render.ts"

interface Terms {
  readonly terminal: Terminal.Terminal
  readonly isTerminal: boolean
  readonly isScripted: boolean
}

const decide = (request: Approval.Request, { isScripted, isTerminal, terminal }: Terms) =>
  Effect.gen(function* () {
    // What happened before is on the screen first: whoever reads the events is a moment behind.
    yield* Effect.sleep("50 millis")
    yield* Console.log(`\n? ${request.path.join(" > ")} asks: ${printable(request.description)}`)
    if (!isTerminal) {
      yield* Console.log(`  There is no terminal to ask at: ${isScripted ? "approved by the script" : "refused"}.`)
      return isScripted ? Approval.approve(request) : Approval.reject(request, "Nobody is there to ask.")
    }
    yield* Effect.ignore(terminal.display("  y, a (always), n, or n and a reason: "))
    // No line any more (Ctrl-D) is a no.
    const line = yield* Effect.orElseSucceed(terminal.readLine, () => "n")
    const [, letter = "n", reason = ""] = /^\s*([yan]?)\b\s*(.*)$/i.exec(line) ?? []
    if (letter.toLowerCase() === "y") return Approval.approve(request)
    if (letter.toLowerCase() === "a") return Approval.approve(request, { always: true })
    return Approval.reject(request, reason === "" ? undefined : reason)
  })

/** Sub-agents at work side by side ask one after the other. */
export const approvals = ({
  isScripted
}: {
  readonly isScripted: boolean
}): Layer.Layer<Approval.Approvals, never, Stdio.Stdio | Terminal.Terminal> =>
  Layer.effect(
    Approval.Approvals,
    Effect.gen(function* () {
      const terminal = yield* Terminal.Terminal
      const stdio = yield* Stdio.Stdio
      const isTerminal = (yield* stdio.stdinIsTerminal) && (yield* stdio.stdoutIsTerminal)
      const lock = yield* Semaphore.make(1)
      return { decide: (request) => lock.withPermit(decide(request, { terminal, isTerminal, isScripted })) }
    })
  )
