/** The commands about workflows. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { events, json } from "../flags.ts"
import { load, runWithoutAgent, running } from "../root.ts"

const inWorkflows = runWithoutAgent(() => import("../workflowCommand.ts"))

const name = Argument.String("name").pipe(Argument.withDescription("The name of the workflow (deepagents workflow)"))

const agents = Flag.Int("agents").pipe(
  Flag.withDescription("The most agents that the script may ask; 1,000 by default"),
  Flag.optional
)

const show = Command.make("show", { name }, (options) =>
  inWorkflows((Workflows, context) => Workflows.show(context, options.name))
).pipe(Command.withDescription("Shows a workflow with its script"))

const run = Command.make(
  "run",
  {
    name,
    words: Argument.String("args").pipe(
      Argument.withDescription("The value of args: one word of JSON, or the list of the words"),
      Argument.variadic()
    ),
    agents,
    session: Flag.String("session").pipe(
      Flag.withDescription("The session of an earlier run, whose work the script finds, edited or not"),
      Flag.optional
    ),
    events
  },
  Effect.fnUntraced(function* (options) {
    const Workflows = yield* load(() => import("../workflowCommand.ts"))
    return yield* Workflows.run(yield* running, options.name, {
      words: options.words,
      json: options.events,
      agents: Option.getOrUndefined(options.agents),
      session: Option.getOrUndefined(options.session)
    })
  })
).pipe(
  Command.withDescription("Runs a workflow to its end, and prints the value of its script"),
  Command.withExamples([
    { command: "deepagents workflow run survey src docs", description: 'Runs it with args ["src", "docs"]' },
    { command: `deepagents workflow run survey '{"depth": 2}' --budget 5`, description: "For at most 5 US dollars" }
  ])
)

const resume = Command.make(
  "resume",
  {
    session: Argument.String("session").pipe(Argument.withDescription("The session of the workflow, or its end")),
    agents,
    events
  },
  Effect.fnUntraced(function* (options) {
    const Workflows = yield* load(() => import("../workflowCommand.ts"))
    return yield* Workflows.resume(yield* running, options.session, {
      json: options.events,
      agents: Option.getOrUndefined(options.agents)
    })
  })
).pipe(Command.withDescription("Goes on with a workflow that was cut off, stopped or waits; what is done stays done"))

const status = Command.make(
  "status",
  { session: Argument.String("session").pipe(Argument.optional), json },
  (options) =>
    inWorkflows((Workflows, context) => Workflows.status(context, Option.getOrUndefined(options.session), options.json))
).pipe(Command.withDescription("Lists the workflows that were run in this folder, and how each stands"))

const list = Command.make("list", { json }, (options) =>
  inWorkflows((Workflows, context) => Workflows.list(context, options.json))
).pipe(Command.withDescription("Lists the saved workflows"))

export const workflowCommand = Command.make("workflow", { json }, (options) =>
  inWorkflows((Workflows, context) => Workflows.list(context, options.json))
).pipe(
  Command.withDescription("Lists the saved workflows; list, show, run, status, resume"),
  Command.withSubcommands([list, show, run, status, resume])
)
