/** `deepagents inbox`: pending requests of all sessions, and decisions on them. */
import { userInfo } from "node:os"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Approval from "../../../core/Approval.ts"
import { isObject, Json } from "../../../core/Json.ts"
import { SessionStore } from "../../../core/SessionStore.ts"
import * as ToolCall from "../../../core/ToolCall.ts"
import * as Inbox from "../../../rules/Inbox.ts"
import { suggestion } from "../../../support/text/near.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import { answerOf, type Field, fieldsOf, readField } from "../approvals/form.ts"
import type { Places } from "../config/places.ts"
import { choose } from "../config/settings.ts"
import { fail, Failure, orFail } from "../failure.ts"
import { ago, print, printJson, table } from "../output.ts"
import { type Context, sessions } from "../work/app.ts"
import * as Threads from "../work/threads.ts"
import { storedOf } from "../work/workflows/workflows.ts"
import { proceed } from "./run.ts"
import { resume } from "./workflowCommand.ts"

/** A decision on a request. */
export type Verdict =
  | { readonly _tag: "approve" }
  | { readonly _tag: "reject"; readonly reason: string | undefined }
  | { readonly _tag: "answer"; readonly text: string }

/** An inbox that only reads. */
const readOnlyInbox = Inbox.layer({ deliver: () => Effect.void })

/** Shortens an id for display. */
const brief = (id: string): string => id.slice(0, 8)

const lineage = ({ path }: Approval.Request): string => path.join(" › ")

const wants = ({ answer, arguments: args, description, toolName }: Approval.Request): string =>
  oneLine(answer === undefined ? `${toolName} ${ToolCall.describeArguments(args)}` : `asks: ${description}`)

export const list = (places: Places, asJson: boolean) =>
  Effect.gen(function* () {
    const { list: waiting } = yield* Inbox.Inbox
    const items = yield* orFail("failed")(waiting())
    if (asJson) return yield* printJson(items)
    if (items.length === 0) return yield* print("Nothing waits.")
    const now = yield* Clock.currentTimeMillis
    const rows = items.map(({ claim, id, isExpired, request, threadId = "" }) => [
      brief(id),
      ago(now - request.at),
      threadId,
      lineage(request),
      (isExpired ? "(too late) " : claim === undefined ? "" : `(taken by ${claim.by.id}) `) +
        wants(request).slice(0, 160)
    ])
    return yield* print(
      ...table([["id", "since", "session", "agent", "wants"], ...rows]),
      "",
      "deepagents inbox show, approve, reject or answer, with an id"
    )
  }).pipe(Effect.provide(readOnlyInbox), Effect.provide(sessions(places)))

/** Finds a request by its id, or by a unique beginning. */
const find = Effect.fnUntraced(function* (id: string) {
  const { list: waiting } = yield* Inbox.Inbox
  const items = yield* orFail("failed")(waiting())
  const exact = items.find((item) => item.id === id)
  const matches = exact === undefined ? items.filter((item) => id !== "" && item.id.startsWith(id)) : [exact]
  const [one] = matches
  if (one !== undefined && matches.length === 1) return one
  const quotedId = JSON.stringify(id.slice(0, 80))
  if (matches.length > 1) {
    return yield* fail(
      "usage",
      `${matches.length} ids begin with ${quotedId}: ${matches.map((item) => item.id).join(", ")}`
    )
  }
  const ids = items.map((item) => (id.length > 8 ? item.id : brief(item.id)))
  return yield* fail("usage", `No request waits with the id ${quotedId}. ${suggestion(id, ids)}`)
})

const fieldLine = ({ id, isRequired, kind, label, options }: Field): string =>
  `  ${id === "" ? "" : `${id}: `}${label} (${options.length > 0 ? options.join(" | ") : kind}${isRequired ? "" : ", may be left out"})`

export const show = (places: Places, id: string) =>
  Effect.gen(function* () {
    const { request, threadId = "" } = yield* find(id)
    const { allow, answer, arguments: args, deciders, description, rule } = request
    const fields = answer === undefined ? [] : fieldsOf(answer, oneLine(description))
    return yield* print(
      ...table([
        ["id", request.id],
        ["session", threadId],
        ["agent", lineage(request)],
        ["tool", request.toolName],
        ["choices", allow.join(", ")],
        ...(rule === undefined ? [] : [["rule", rule]]),
        ...(deciders === undefined ? [] : [["deciders", deciders.join(", ")]])
      ]),
      "",
      visible(description),
      visible(JSON.stringify(args, null, 2)),
      ...(fields.length === 0 ? [] : ["", "The answer has:", ...fields.map((field) => visible(fieldLine(field)))])
    )
  }).pipe(Effect.provide(readOnlyInbox), Effect.provide(sessions(places)))

const jsonIn = Schema.decodeUnknownOption(Schema.fromJsonString(Json))

const parsed = (text: string): Json | undefined => Option.getOrUndefined(jsonIn(text))

/** Reads the answer to a question: JSON, or plain text for a single field. */
const answered = (request: Approval.Request, text: string): Effect.Effect<Json, Failure> => {
  if (request.answer === undefined) return Effect.succeed(text)
  const fields = fieldsOf(request.answer, oneLine(request.description))
  const json = parsed(text)
  if (json !== undefined && isObject(json)) return Effect.succeed(json)
  const [field] = fields
  if (field === undefined || fields.length > 1) {
    return fail("usage", ["Answer in JSON, an object with:", ...fields.map(fieldLine)].map(visible).join("\n"))
  }
  const value = readField(field, text, parsed)
  if ("problem" in value) return fail("usage", visible(value.problem))
  // A single option of a list needs no brackets.
  const whole = field.kind === "many" ? (Array.isArray(json) ? json : [text]) : value.value
  const boolean = field.kind === "boolean" ? text === "yes" || text === "true" : whole
  return Effect.succeed(answerOf(fields, new Map([[field.id, boolean]])))
}

/** The user of this machine, as the decider. */
const me = Effect.sync((): Approval.Principal => {
  // A user without an entry in the user table has no name.
  const name = Result.try(() => userInfo().username)
  return { id: Result.isSuccess(name) ? name.success : `uid ${process.getuid?.() ?? "unknown"}` }
})

/**
 * Decides, and continues the run as `deepagents run` does: prints the answer, and exits with its code. `contextIn`
 * gives the context of the session's folder.
 */
export const decide = <E, R>(
  places: Places,
  id: string,
  verdict: Verdict,
  options: { readonly json: boolean; readonly contextIn: (folder: string) => Effect.Effect<Context, E, R> }
) =>
  Effect.gen(function* () {
    const store = yield* SessionStore
    const item = yield* Effect.provide(find(id), readOnlyInbox)
    const { request, threadId } = item
    if (threadId === undefined) return yield* fail("failed", "This request waits in another process: decide there.")
    const thread = yield* orFail("failed")(store.info(threadId))
    const workflow = storedOf(thread)
    const folder = workflow?.folder ?? Threads.folderOf(thread)
    const context = yield* options.contextIn(folder === "" ? places.project : folder)
    const [agent = ""] = request.path
    const { settings } = context
    const newSettings =
      settings.agent?.from === "flag" || agent === "" || workflow !== undefined
        ? settings
        : choose(settings, "agent", agent)
    const decision =
      verdict._tag === "approve"
        ? Approval.approve(request)
        : verdict._tag === "reject"
          ? Approval.reject(request, verdict.reason)
          : Approval.respond(request, yield* answered(request, verdict.text))
    let ended: Result.Result<void, Failure> | undefined
    const inbox = Inbox.layer({
      // The exit code reports the end of the run, which is not a failure of the inbox.
      deliver: (thread, decisions) =>
        Effect.map(
          Effect.result(
            workflow === undefined
              ? proceed({ ...context, settings: newSettings }, thread, decisions, options.json)
              : resume(context, thread, { json: options.json, decisions })
          ),
          (result) => {
            ended = result
          }
        )
    })
    const by = yield* me
    yield* Inbox.Inbox.use((one) => one.decide([decision], { by })).pipe(
      Effect.provide(inbox),
      Effect.mapError(
        ({ message, reason }) => new Failure({ exit: reason._tag === "Refused" ? "usage" : "failed", message })
      )
    )
    return yield* ended === undefined ? Effect.void : Effect.fromResult(ended)
  }).pipe(Effect.provide(sessions(places)))
