/** The tree of commands. The code of a command loads when it is called, so that `--help` is fast. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { attach } from "../attach/tree.ts"
import type { Context } from "../work/app.ts"
import { json, off } from "./flags.ts"
import { contextFor, load, runWithoutAgent, root, running } from "./root.ts"
import { inbox } from "./trees/inbox.ts"
import { mcpCommand } from "./trees/mcp.ts"
import { schedule } from "./trees/schedule.ts"
import { session, sessionsCommand } from "./trees/sessions.ts"
import { agents, config, extensions, inSetup, models, skills, trust } from "./trees/setup.ts"
import { workflowCommand } from "./trees/workflow.ts"

const inIndex = runWithoutAgent(() => import("./indexCommand.ts"))
const inDoctor = runWithoutAgent(() => import("./doctor.ts"))

const run = Command.make(
  "run",
  {
    words: Argument.String("prompt").pipe(
      Argument.withDescription("The prompt. Piped input is added to it, or is the prompt; - reads the standard input"),
      Argument.variadic()
    ),
    files: Flag.String("file").pipe(
      Flag.withAlias("f"),
      Flag.withMetavar("path"),
      Flag.withDescription("A file that goes with the prompt: text, PDF, image"),
      Flag.atLeast(0)
    ),
    images: Flag.String("image").pipe(
      Flag.withMetavar("path"),
      Flag.withDescription("An image that goes with the prompt"),
      Flag.atLeast(0)
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Prints all events as lines of JSON; the last line is the result"),
      off
    ),
    outputSchema: Flag.String("output-schema").pipe(
      Flag.withMetavar("path"),
      Flag.withDescription("A JSON Schema for the answer, which is then printed as JSON"),
      Flag.optional
    ),
    remember: Flag.Boolean("remember").pipe(
      Flag.withDescription("Lets the agent write to its memory of this folder"),
      off
    ),
    session: Flag.String("session").pipe(
      Flag.withDescription("Continues a session; by default a new session begins"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ files, images, json: asJson, outputSchema, remember, session: thread, words }) {
    const Run = yield* load(() => import("./run.ts"))
    return yield* Run.run(running, {
      words,
      files: [...files, ...images],
      json: asJson,
      outputSchema: Option.getOrUndefined(outputSchema),
      remembers: remember,
      thread: Option.getOrUndefined(thread)
    })
  })
).pipe(
  Command.withDescription("Runs one prompt, prints the answer, and ends"),
  Command.withExamples([
    { command: 'deepagents run "Why does the test fail?"', description: "Asks about this folder" },
    { command: 'git diff | deepagents run "Review this" --agent reviewer', description: "Adds piped input" },
    { command: 'deepagents run "Which licenses?" --output-schema licenses.json', description: "Answers in JSON" }
  ])
)

/** Starts the chat. Piped input becomes its lines. The prompt appears before the rest loads. */
const talking = Effect.fnUntraced(function* (
  context: Context,
  options: { readonly resume: boolean; readonly id?: string | undefined; readonly first?: string | undefined }
) {
  const Early = yield* load(() => import("../early.ts"))
  const terminal = yield* Early.promptOf(context)
  const Talk = yield* load(() => import("../work/talk.ts"))
  return yield* Talk.talk(context, { ...options, terminal })
}, Effect.scoped)

const chat = Command.make(
  "chat",
  { prompt: Argument.String("prompt").pipe(Argument.withDescription("The first message"), Argument.optional) },
  ({ prompt }) =>
    Effect.flatMap(running, (context) => talking(context, { resume: false, first: Option.getOrUndefined(prompt) }))
).pipe(Command.withDescription("Talks with the agent; the same as deepagents alone"))

const resume = Command.make(
  "resume",
  { session: session.pipe(Argument.optional) },
  Effect.fnUntraced(function* (options) {
    const context = yield* running
    return yield* talking(context, { resume: true, id: Option.getOrUndefined(options.session) })
  })
).pipe(Command.withDescription("Continues a session: the last session of this folder, or the named one"))

const doctor = Command.make(
  "doctor",
  {
    live: Flag.Boolean("live").pipe(Flag.withDescription("Also asks the model for a word"), off),
    format: Flag.Literals("format", ["text", "markdown", "json"]).pipe(
      Flag.withDescription("The form of the report"),
      Flag.withDefault("text")
    )
  },
  (options) => inDoctor((Doctor, context) => Doctor.doctor(context, options))
).pipe(Command.withDescription("Checks the agent of this folder: model, key, tools, sessions, files, sandbox, servers"))

const evaluation = Command.make(
  "eval",
  {
    file: Argument.String("cases").pipe(
      Argument.withDescription("The cases: lines of JSON, or a table (.csv); docs/evals.md names the fields")
    ),
    trials: Flag.Int("trials").pipe(Flag.withDescription("How often each case is run"), Flag.withDefault(1)),
    k: Flag.Int("k").pipe(
      Flag.withDescription("The k of pass@k and pass^k; the number of trials by default"),
      Flag.optional
    ),
    concurrency: Flag.Int("concurrency").pipe(
      Flag.withDescription("Trials at once; they share this folder"),
      Flag.withDefault(1)
    ),
    format: Flag.Literals("format", ["markdown", "json", "junit", "html"]).pipe(
      Flag.withDescription("The form of the report"),
      Flag.withDefault("markdown")
    ),
    output: Flag.String("output").pipe(
      Flag.withAlias("o"),
      Flag.withMetavar("path"),
      Flag.withDescription("The file of the report; the standard output by default"),
      Flag.optional
    ),
    before: Flag.String("before").pipe(
      Flag.withMetavar("path"),
      Flag.withDescription("An earlier report (--format json) to compare with"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ before, k, output, ...options }) {
    const Eval = yield* load(() => import("./eval.ts"))
    return yield* Eval.evaluate(yield* running, {
      ...options,
      before: Option.getOrUndefined(before),
      k: Option.getOrUndefined(k),
      output: Option.getOrUndefined(output)
    })
  })
).pipe(
  Command.withDescription("Runs the agent on cases, scores the answers, and fails unless all trials pass"),
  Command.withExamples([
    {
      command: "deepagents eval cases.jsonl --trials 5 --k 3",
      description: "The share that passes, pass^3 and pass@3"
    },
    { command: "deepagents eval cases.jsonl -m ollama:qwen3:8b --before main.json", description: "Compares two models" }
  ])
)

const index = Command.make(
  "index",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription("A folder in this one; the whole folder by default"),
      Argument.optional
    ),
    list: Flag.Boolean("list").pipe(Flag.withDescription("Lists what is indexed"), off),
    drop: Flag.Boolean("drop").pipe(Flag.withDescription("Removes the index of this folder"), off),
    json
  },
  (options) =>
    inIndex((Index, context) => Index.index(context, { ...options, folder: Option.getOrUndefined(options.folder) }))
).pipe(
  Command.withDescription("Indexes the documents of this folder, so that agents find passages in them and cite them"),
  Command.withExamples([
    { command: "deepagents index docs", description: "Indexes a folder; again, only what changed" },
    { command: "deepagents index --list", description: "Lists what is indexed" }
  ])
)

const init = Command.make(
  "init",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription("The folder of the project; this folder by default"),
      Argument.optional
    ),
    template: Flag.Literals("template", ["chat", "research", "coder", "http", "worker", "action"]).pipe(
      Flag.withAlias("t"),
      Flag.withDescription("A whole project that uses the library; or action, a GitHub Action for a repository"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function* ({ folder, template }) {
    const { cwd } = yield* root
    const Init = yield* load(() => import("./init.ts"))
    const where = Option.getOrElse(folder, () => cwd)
    return yield* Option.match(template, {
      onNone: () => Init.initProject(where),
      onSome: (name) => (name === "action" ? Init.initAction(where) : Init.initTemplate(where, name))
    })
  })
).pipe(
  Command.withDescription("Writes an agent as a file, settings and AGENTS.md; or a project from a template"),
  Command.withExamples([
    { command: "deepagents init", description: "Files for this folder" },
    { command: "deepagents init my-agent --template chat", description: "A project of its own" },
    { command: "deepagents init --template action", description: "A GitHub Action in this repository" }
  ])
)

const update = Command.make(
  "update",
  { json },
  Effect.fnUntraced(function* (options) {
    const Update = yield* load(() => import("./update.ts"))
    return yield* Update.update(options.json)
  })
).pipe(Command.withDescription("Says whether there is a newer version, and what is new in it"))

const acp = Command.make(
  "acp",
  { login: Flag.Boolean("login").pipe(Flag.withDescription("Keeps the key of a provider, and ends"), off) },
  Effect.fnUntraced(function* ({ login: signsIn }) {
    if (signsIn) return yield* inSetup((Setup, context) => Setup.login(context, undefined))
    const Editor = yield* load(() => import("../editor/serve.ts"))
    return yield* Editor.serve(yield* root)
  })
).pipe(
  Command.withDescription("Serves the agent to an editor, by the Agent Client Protocol on standard input and output"),
  Command.withExamples([{ command: "deepagents acp", description: "The command to give to the editor" }])
)

const serve = Command.make(
  "serve",
  {
    host: Flag.String("host").pipe(
      Flag.withDescription("The address to listen on; another machine needs the token of DEEPAGENTS_SERVE_TOKEN"),
      Flag.withDefault("127.0.0.1")
    ),
    port: Flag.Int("port").pipe(Flag.withDescription("The port; 0 takes any free one"), Flag.withDefault(8_137)),
    names: Flag.String("name").pipe(
      Flag.withDescription("A name by which others reach the server, beside its addresses"),
      Flag.atLeast(0)
    )
  },
  Effect.fnUntraced(function* (options) {
    const Serve = yield* load(() => import("./serve.ts"))
    return yield* Serve.serve(yield* running, { ...options, opens: false })
  })
).pipe(
  Command.withDescription(
    "Serves the agent of this folder by HTTP, with a page; its runs outlive connections and restarts"
  ),
  Command.withExamples([{ command: "deepagents serve --port 8080", description: "For this machine alone" }])
)

const web = Command.make(
  "web",
  {
    port: Flag.Int("port").pipe(Flag.withDescription("The port; any free one by default"), Flag.withDefault(0))
  },
  Effect.fnUntraced(function* ({ port }) {
    const Serve = yield* load(() => import("./serve.ts"))
    return yield* Serve.serve(yield* running, { host: "127.0.0.1", port, names: [], opens: true })
  })
).pipe(Command.withDescription("Opens the agent of this folder in the browser, for this machine alone"))

export const command = root.pipe(
  Command.withHandler((flags) =>
    Effect.flatMap(contextFor(flags, true), (context) => talking(context, { resume: false }))
  ),
  Command.withDescription(
    "A deep agent in this folder: it plans, reads and changes files, runs commands, does research"
  ),
  Command.withSubcommands([
    chat,
    run,
    resume,
    sessionsCommand,
    workflowCommand,
    inbox,
    models,
    agents,
    skills,
    extensions,
    mcpCommand,
    acp,
    schedule,
    serve,
    web,
    attach,
    trust,
    config,
    doctor,
    evaluation,
    index,
    init,
    update
  ])
)
