/** `deepagents eval`: runs the agent of this folder on cases, and reports. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Approval from "../../../core/Approval.ts"
import * as Cases from "../../../evals/Cases.ts"
import * as Eval from "../../../evals/Eval.ts"
import * as Report from "../../../evals/Report.ts"
import * as Scorers from "../../../evals/Scorers.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { fail, orFail } from "../failure.ts"
import { print, tell, write } from "../output.ts"
import { type Context, openApp } from "../work/app.ts"

/** The options of the command. `output` and `before` are paths. */
export interface Options {
  readonly file: string
  readonly trials: number
  readonly k: number | undefined
  readonly concurrency: number
  readonly format: "markdown" | "json" | "junit" | "html"
  readonly output: string | undefined
  readonly before: string | undefined
}

const readText = Effect.fnUntraced(function* (path: string) {
  const files = yield* FileSystem.FileSystem
  return yield* Effect.catch(files.readFileString(path), () => fail("usage", `${path} can't be read`))
})

const codec = Schema.fromJsonString(Report.Report)
const encode = Schema.encodeEffect(codec)

const readReport = Effect.fnUntraced(function* (path: string) {
  const text = yield* readText(path)
  return yield* Effect.catch(Schema.decodeEffect(codec)(text), () =>
    fail("usage", `${path} is no report of an evaluation; deepagents eval --format json writes one`)
  )
})

/** Nobody is there to ask. Commands and edits run with `--allow`, with rules of a policy, or with `--yolo`. */
const decide = ({ settings }: Context): Layer.Layer<Approval.Approvals> => {
  const isFree = settings.approvals?.value === "yolo"
  return Layer.succeed(Approval.Approvals, {
    decide: (request) =>
      Effect.succeed(
        isFree && request.byPerson !== true
          ? Approval.approve(request)
          : Approval.reject(request, "Nobody is there to ask. Go on without this call.")
      )
  })
}

const render = (report: Report.Report, format: Options["format"]) => {
  switch (format) {
    case "markdown":
      return Effect.succeed(Report.toMarkdown(report))
    case "junit":
      return Effect.succeed(Report.toJUnit(report))
    case "html":
      return Effect.succeed(Report.toHtml(report))
    case "json":
      return Effect.orDie(encode(report))
  }
}

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`

const compare = (before: Report.Report, after: Report.Report): ReadonlyArray<string> => {
  const { changes, difference, missing, pValue } = Report.compare(before, after)
  const changed = changes.filter((one) => one.before !== one.after)
  const verdict = pValue < 0.05 ? "hardly chance" : "it may be chance"
  return [
    `Against ${visible(before.agent)}: ${difference < 0 ? "" : "+"}${percent(difference)} (p = ${pValue.toFixed(3)}: ${verdict})`,
    ...changed.map((one) => `  ${visible(one.name)}: ${percent(one.before)} → ${percent(one.after)}`),
    ...(missing.length === 0 ? [] : [`  In one report only: ${visible(missing.join(", "))}`])
  ]
}

/** Runs the cases of a file, and prints the report. It fails unless all trials pass. */
export const evaluate = Effect.fnUntraced(function* (context: Context, options: Options) {
  const { file, format, output } = options
  const text = yield* readText(file)
  const cases = yield* orFail("usage")(file.endsWith(".csv") ? Cases.fromCsv(text) : Cases.fromJsonl(text))
  const before = options.before === undefined ? undefined : yield* readReport(options.before)
  const files = yield* FileSystem.FileSystem
  const unwritten = () => fail("usage", `${output} can't be written: name a file in a folder that is there`)
  // Before the trials are paid for.
  if (output !== undefined) yield* Effect.catch(Effect.scoped(files.open(output, { flag: "a" })), unwritten)
  const app = yield* openApp(context)
  for (const problem of app.problems) yield* tell(`! ${visible(problem)}`)
  const agent = yield* app.agent({ mode: "ask" })
  const report = yield* orFail("usage")(
    Eval.suite({
      agent,
      cases,
      scorers: [Scorers.expectations, Scorers.files],
      layer: (one) => {
        const services = Layer.mergeAll(app.files("evaluation"), decide(context))
        return one.files === undefined && one.leaves === undefined ? services : Layer.merge(services, Eval.files(one))
      },
      trials: options.trials,
      k: options.k,
      concurrency: options.concurrency
    })
  ).pipe(Effect.provide(app.chatModel))
  const rendered = yield* render(report, format)
  if (output === undefined) yield* write(rendered.endsWith("\n") ? rendered : `${rendered}\n`)
  else {
    yield* Effect.catch(files.writeFileString(output, rendered), unwritten)
    yield* print(`The report is in ${output}.`)
  }
  if (before !== undefined) yield* tell(...compare(before, report))
  const { isPassed, passed, trials } = Report.summarize(report)
  if (isPassed) return
  const exit = report.stopped === undefined ? "failed" : "noModel"
  return yield* fail(
    exit,
    `${passed} of ${trials} trials passed.${report.stopped === undefined ? "" : ` Stopped: ${report.stopped}`}`
  )
})
