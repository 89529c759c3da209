/**
 * Rewrites a script before it runs, so that redirections fail as in a shell and output is streamed.
 *
 * just-bash aborts the whole line when a file can't be written, unless it notices before it opens the file. Marked
 * targets of redirections therefore tell the file system to open them on an existence check. just-bash also returns
 * output only at the end, so each part of a longer line writes to a marked file, the output.
 */
import type { CommandNode, PipelineNode, ScriptNode, SimpleCommandNode, StatementNode } from "just-bash"
import { valueAt } from "../../../support/json/valueAt.ts"

type Redirection = SimpleCommandNode["redirections"][number]

const mark = "\u{E0A1}"
const marks = {
  replace: `${mark}w:`,
  add: `${mark}a:`,
  stdout: `${mark}o:`,
  stderr: `${mark}e:`
} as const

/** The purpose of a marked file; `replace` and `add` are redirections. */
export type Use = keyof typeof marks

const uses: ReadonlyArray<Use> = ["replace", "add", "stdout", "stderr"]

/** Takes the mark off a path. */
export const unmarked = (path: string): { readonly use: Use | undefined; readonly path: string } => {
  const use = path.startsWith(mark) ? uses.find((one) => path.startsWith(marks[one])) : undefined
  return use === undefined ? { use, path } : { use, path: path.slice(marks[use].length) }
}

export const markPath = (use: Use, path: string): string => marks[use] + path

const refused = new RegExp(`bash: ${mark}[wa]:([^\\n${mark}]*): cannot open redirect target\\n`, "g")
const anyMark = new RegExp(`${mark}[waoe]:`, "g")

/** Removes the marks from output, and inserts the reasons of refused redirections. */
export const readable = (text: string, complaints: ReadonlyMap<string, string>): string =>
  text.includes(mark)
    ? text.replace(refused, (whole, target: string) => complaints.get(target) ?? whole).replace(anyMark, "")
    : text

const operators: { readonly [operator: string]: Use } = {
  ">": "replace",
  ">|": "replace",
  "&>": "replace",
  ">>": "add",
  "&>>": "add"
}

const isRedirection = (node: object): node is Redirection => "type" in node && node.type === "Redirection"

const markTarget = ({ operator, target }: Redirection): void => {
  const use = valueAt(operators, operator)
  if (use === undefined || target.type !== "Word") return
  const [first] = target.parts
  // The shell looks for its devices by name, and a pattern must match names of files.
  if (first?.type === "Literal" && first.value.startsWith("/dev/")) return
  if (target.parts.some((part) => part.type === "Glob")) return
  target.parts.unshift({ type: "Literal", value: marks[use] })
}

const markTargets = (script: ScriptNode): void => {
  const seen = new Set<object>()
  const open: Array<unknown> = [script]
  while (open.length > 0) {
    const node = open.pop()
    if (typeof node !== "object" || node === null || seen.has(node)) continue
    seen.add(node)
    if (isRedirection(node)) markTarget(node)
    for (const part of Object.values(node)) open.push(part)
  }
}

const goingTo = (fd: 1 | 2): Redirection => ({
  type: "Redirection",
  fd,
  operator: ">>",
  target: { type: "Word", parts: [{ type: "Literal", value: fd === 1 ? marks.stdout : marks.stderr }] }
})

const isInput = ({ operator }: Redirection): boolean =>
  operator === "<" || operator === "<<" || operator === "<<-" || operator === "<<<"

/** Makes the parts of a compound command stream their output; `undefined` for a command that redirects it. */
const inside = (command: CommandNode): CommandNode | undefined => {
  if (command.type === "SimpleCommand" || command.type === "FunctionDef") return undefined
  if (!command.redirections.every(isInput)) return undefined
  switch (command.type) {
    case "If": {
      const clauses = command.clauses.map(({ body, condition }) => ({
        condition: condition.map(writing),
        body: body.map(writing)
      }))
      return { ...command, clauses, elseBody: command.elseBody?.map(writing) ?? null }
    }
    case "For":
    case "CStyleFor":
    case "Group":
      return { ...command, body: command.body.map(writing) }
    case "While":
    case "Until":
      return { ...command, condition: command.condition.map(writing), body: command.body.map(writing) }
    case "Case":
      return { ...command, items: command.items.map((item) => ({ ...item, body: item.body.map(writing) })) }
    case "Subshell":
    case "ArithmeticCommand":
    case "ConditionalCommand":
      return undefined
  }
}

const toOutput = (command: CommandNode, fds: ReadonlyArray<1 | 2>): CommandNode => {
  if (command.type === "FunctionDef" || (command.type === "SimpleCommand" && command.name === null)) return command
  // Its own redirections come later, and so hold.
  return { ...command, redirections: [...fds.map(goingTo), ...command.redirections] }
}

const writingPipeline = (pipeline: PipelineNode): PipelineNode => {
  const { commands, pipeStderr, timed } = pipeline
  const [only] = commands
  const replacement = commands.length === 1 && only !== undefined && timed !== true ? inside(only) : undefined
  if (replacement !== undefined) return { ...pipeline, commands: [replacement] }
  return {
    ...pipeline,
    commands: commands.map((command, index) => {
      if (index === commands.length - 1) return toOutput(command, [1, 2])
      return pipeStderr?.[index] === true ? command : toOutput(command, [2])
    })
  }
}

const writing = (statement: StatementNode): StatementNode =>
  statement.background || statement.deferredError !== undefined
    ? statement
    : { ...statement, pipelines: statement.pipelines.map(writingPipeline) }

const isSimple = ({ statements }: ScriptNode): boolean => {
  const [only, ...others] = statements
  const [pipeline, ...more] = only?.pipelines ?? []
  const [command] = pipeline?.commands ?? []
  return others.length === 0 && more.length === 0 && (command === undefined || command.type === "SimpleCommand")
}

/** Streams that `exec` redirects are not to be redirected for each command. */
const redirectsAll = /\bexec\b/

/** Tells whether the shell needs to know existing files before it opens them. */
const keepsFiles = (source: string): boolean =>
  source.includes("noclobber") ||
  source.split(/[;\n]/).some((part) => {
    const at = part.search(/\bset\s/)
    return at !== -1 && /-\w*C/.test(part.slice(at))
  })

/** Prepares a script. A nested script buffers its output for the outer command. */
export const prepare = (source: string, script: ScriptNode, isOutermost: boolean): ScriptNode => {
  if (!keepsFiles(source)) markTargets(script)
  if (!isOutermost || isSimple(script) || redirectsAll.test(source)) return script
  return { ...script, statements: script.statements.map(writing) }
}
