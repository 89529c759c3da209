/**
 * Lets the model ask the user: several questions at once, each a text, one of some options, or many of them.
 *
 * The questions come as one request of `ask_user`, whose `answer` is the JSON Schema of a form. `Approval.respond` gives
 * the answers by their questions' ids, `Approval.reject` says that nobody will. Where `Approvals` is in the run's context,
 * that is asked while the run waits; elsewhere the run is suspended until `Agent.resume` brings the answers.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { AskUser } from "effect-deepagents/middleware"
 *
 * const planner = Agent.make({ name: "planner", prompt: "You plan trips.", middleware: [AskUser.make()] })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { fromUnknown } from "../core/Json.ts"
import * as Middleware from "../core/Middleware.ts"
import * as Question from "../core/Question.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import { once } from "../support/effect/once.ts"
import { valueAt } from "../support/json/valueAt.ts"
import { escaped } from "../support/text/untrusted.ts"

/** The name of this middleware. */
export const name = "AskUser"

/** The name of the tool. */
const toolName = "ask_user"

const words = (expected: string) => Schema.String.check(Schema.isPattern(/\S/u, { expected }))

const askedSchema = () =>
  Schema.Struct({
    id: words("an id").annotate({ description: "A short name, of its own: the answer comes under it." }),
    label: words("a question in words").annotate({ description: "The question, complete in itself." }),
    kind: Schema.Literals(["text", "one", "many"]).annotate({
      description: "The answer: words of the user's, one of the options, or any number of them."
    }),
    options: Schema.optionalKey(Schema.Array(words("an option"))),
    required: Schema.optionalKey(Schema.Boolean).annotate({ description: "Default true." })
  })
type AskedQuestion = ReturnType<typeof askedSchema>["Type"]

/** The reason that questions can't be asked. */
const problemOf = (questions: ReadonlyArray<AskedQuestion>): string | undefined => {
  const seen = new Set<string>()
  for (const { id, kind, options = [] } of questions) {
    if (seen.has(id)) return `Two questions have the id "${id}". Give each one of its own.`
    seen.add(id)
    if (kind !== "text" && options.length < 2) return `The question "${id}" needs at least two options, or kind "text".`
  }
  return undefined
}

const answerTo = ({ kind, label, options = [] }: AskedQuestion): Schema.Codec<unknown, unknown> => {
  const schema =
    kind === "text" ? Schema.String : kind === "one" ? Schema.Literals(options) : Schema.Array(Schema.Literals(options))
  return schema.annotate({ title: label })
}

const formOf = (questions: ReadonlyArray<AskedQuestion>) =>
  Schema.Struct(
    Object.fromEntries(
      questions.map((one) => [one.id, one.required === false ? Schema.optionalKey(answerTo(one)) : answerTo(one)])
    )
  )

const say = (value: unknown): string =>
  value === undefined ? "(no answer)" : typeof value === "string" ? value : JSON.stringify(value)

/** Gives the tool `ask_user`, by itself. */
export const tool: () => Tool.Tool<ToolContext> = once(() =>
  Tool.make(toolName, {
    description:
      "Asks the user, and waits for the answers. Ask only for what you can't find out, and what changes what you do; ask all at once.",
    parameters: { questions: Schema.Array(askedSchema()).check(Schema.isMinLength(1)) },
    annotations: { readOnly: true, openWorld: false, aliases: ["AskUserQuestion"] },
    execute: Effect.fnUntraced(function* ({ questions }) {
      const problem = problemOf(questions)
      if (problem !== undefined) return yield* Effect.fail(ToolError.make(problem))
      const { ask } = yield* ToolContext
      const answers: { readonly [id: string]: unknown } = yield* ask(
        Question.make(questions.map(({ label }) => escaped(label)).join("\n"), {
          answer: formOf(questions),
          details: { questions: fromUnknown(questions) }
        })
      )
      return questions.map(({ id, label }) => `${label}\n${say(valueAt(answers, id))}`).join("\n\n")
    })
  })
)

/** Offers the tool. */
export const make: () => Middleware.AskingMiddleware<never, ToolContext> = once(() =>
  Middleware.make<never, ToolContext>({ name, asks: true, tools: [tool()] })
)
