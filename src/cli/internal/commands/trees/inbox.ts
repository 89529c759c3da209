/** The commands about requests that wait for a decision. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { events, json } from "../flags.ts"
import type { Verdict } from "../inbox.ts"
import { contextFor, root, runWithoutAgent } from "../root.ts"

const inInbox = runWithoutAgent(() => import("../inbox.ts"))

const request = Argument.String("id").pipe(Argument.withDescription("The id of the request, or its beginning"))

/** Decides a request, and continues its run. */
const deciding = Effect.fnUntraced(function* (id: string, asJson: boolean, verdict: Verdict) {
  const flags = yield* root
  return yield* inInbox((Inbox, { places }) =>
    Inbox.decide(places, id, verdict, {
      json: asJson,
      contextIn: (folder) => contextFor({ ...flags, cwd: folder }, true)
    })
  )
})

const approve = Command.make("approve", { request, events }, (options) =>
  deciding(options.request, options.events, { _tag: "approve" })
).pipe(Command.withDescription("Approves the call, and continues its session"))

const reject = Command.make(
  "reject",
  { request, reason: Argument.String("reason").pipe(Argument.variadic()), events },
  (options) => {
    const reason = options.reason.join(" ")
    return deciding(options.request, options.events, {
      _tag: "reject",
      reason: reason === "" ? undefined : reason
    })
  }
).pipe(Command.withDescription("Rejects the call, with a reason for the model, and continues its session"))

const answer = Command.make(
  "answer",
  {
    request,
    text: Argument.String("answer").pipe(
      Argument.withDescription("Text, or JSON with the names of the questions"),
      Argument.variadic({ min: 1 })
    ),
    events
  },
  (options) => deciding(options.request, options.events, { _tag: "answer", text: options.text.join(" ") })
).pipe(
  Command.withDescription("Answers a question, and continues its session"),
  Command.withExamples([
    { command: "deepagents inbox answer 3f9a blue", description: "A single question" },
    { command: `deepagents inbox answer 3f9a '{"color": "blue", "size": "L"}'`, description: "Several questions" }
  ])
)

const waiting = Command.make("show", { request }, (options) =>
  inInbox((Inbox, { places }) => Inbox.show(places, options.request))
).pipe(Command.withDescription("Shows a request: its arguments, the possible decisions, the form of an answer"))

export const inbox = Command.make("inbox", { json }, (options) =>
  inInbox((Inbox, { places }) => Inbox.list(places, options.json))
).pipe(
  Command.withDescription("Requests that wait for a decision, in all sessions: show, approve, reject, answer"),
  Command.withSubcommands([waiting, approve, reject, answer])
)
