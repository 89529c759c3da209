/** Commands of the person: `!git status`. The agent reads their output with the next message. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { Sandbox } from "../../../core/Sandbox.ts"
import { clean } from "../../../support/text/clean.ts"
import { cutMiddle } from "../../../support/text/text.ts"
import { problem, toProblem } from "./room.ts"
import type { Ui } from "./ui.ts"

/** The most characters of output for the agent. */
const most = 20_000

/** Lines of output that are shown while the command runs. */
const shownAtOnce = 5

/** All variables of the person, but for pagers and prompts that would wait. */
const personal = (): { readonly [name: string]: string } =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined ||
      !/^[A-Za-z_]\w*$/.test(name) ||
      ["PWD", "OLDPWD", "TERM"].includes(name) ||
      quiet.test(name)
        ? []
        : [[name, value]]
    )
  )

/** The shell sets these itself. */
const quiet = /PAGER$|^GIT_(?:TERMINAL_PROMPT|EDITOR)$/

export const shell = Effect.fnUntraced(function* (ui: Ui, command: string) {
  const sandbox = yield* Effect.serviceOption(Sandbox)
  if (Option.isNone(sandbox))
    return yield* Effect.fail(problem("This agent has no shell, so commands can't be run here."))
  if (command === "") return yield* Effect.fail(problem("Say the command: !git status"))
  let output = ""
  let exitCode = 0
  let leftovers: ReadonlyArray<string> = []
  const concludeOutput = (end: ReadonlyArray<string>): string => {
    const text = cutMiddle(clean(output).trimEnd(), most, (left) => `\n… ${left} characters left out …\n`)
    ui.parts([
      { kind: "note", level: "info", text: `$ ${clean(command)}` },
      { kind: "code", language: "", text, isFirst: true, more: false },
      ...end.map((line) => ({ kind: "note", level: "warning", text: line }) as const)
    ])
    return text
  }
  yield* toProblem(
    Stream.runForEach(sandbox.value.executeStream(command, { env: personal() }), (event) =>
      Effect.sync(() => {
        if (event._tag === "Exited") {
          exitCode = event.exitCode
          leftovers = event.left ?? []
        } else {
          output = cutMiddle(output + event.text, most * 2, () => "\n…\n")
          const last = clean(output.slice(-shownAtOnce * 200))
            .trimEnd()
            .split("\n")
            .slice(-shownAtOnce)
          ui.setBusy([`!${command}`, ...last].join("\n"))
        }
      })
    )
  ).pipe(Effect.onInterrupt(() => Effect.sync(() => concludeOutput(["interrupted"]))))
  const text = concludeOutput([
    ...(exitCode === 0 ? [] : [`exit code ${exitCode}`]),
    ...(leftovers.length === 0 ? [] : [`it left behind ${leftovers.join(", ")}, now ended`])
  ])
  return `I ran \`${command}\` (exit code ${exitCode}):\n\n${text}`
})
