/**
 * Reads the options of the public constructors from their types.
 *
 * - Writes `shapes.ts` of each folder of `src/`: the shapes that constructors check their options by at run time.
 * - Writes the tables of options in `docs/`, between `<!-- options:Agent.make:start -->` and its end, from their JSDoc.
 * - Fails for an option without a JSDoc sentence, a constructor that checks no options, a table of options that is written
 *   by hand, and a layer that is a function without parameters.
 *
 * `npm run options` writes; `npm run options:check` fails where a file differs.
 */
import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { API, type Signature, SignatureKind, type Symbol, SymbolFlags, type Type } from "typescript/unstable/sync"
import { makeReach } from "./options/reach.ts"
import { type Alternative, makeReader, type Property } from "./options/shape.ts"
import { findHandwritten, writeTables } from "./options/tables.ts"

const isCheck = process.argv.includes("--check")
const root = resolve(".")

/** Constructors of plain values and pure functions, which can't fail, tools for tests, and `Middleware.make`, which `Agent.make` checks. */
const unchecked =
  /^(?:core\/(?:MiddlewareMake$|Message|Content|ToolOutput|ToolError|Ruling|Approval|Sources|AgentState|Question|DocumentFormat)|rag\/HashingEmbeddingModel|testing\/|view\/|agents\/Doctor)/

/** A parameter of a public function that takes options. */
interface Door {
  readonly room: string
  readonly file: string
  /** The name in its module, and the name of its shape. */
  readonly exported: string
  readonly name: string
  readonly alternatives: ReadonlyArray<Alternative>
}

const api = new API({ cwd: root })
const [project] = api.updateSnapshot({ openProject: `${root}/tsconfig.build.json` }).getProjects()
if (project === undefined) throw new Error("tsconfig.build.json is no project")
const { checker, program } = project

const isOwn = (symbol: Symbol | undefined) =>
  symbol?.declarations.some(
    ({ path }) => path.startsWith(`${root.toLowerCase()}/src/`) || path.startsWith(`${root}/src/`)
  ) === true
const { alternativesOf, fieldsOf, isStruct, membersOf, nameOf, shapeOf } = makeReader(checker, isOwn)

const lowerFirst = (text: string) => text.slice(0, 1).toLowerCase() + text.slice(1)
const upperFirst = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1)

/** A parameter of a signature. The parameters of a generic `Effect.fn` lose their names. */
interface Parameter {
  readonly name: string | undefined
  readonly type: Type
}

/** The parameters of a signature. Those of a generic `Effect.fn` are a tuple behind `...args`. */
const parametersOf = (signature: Signature): ReadonlyArray<Parameter> =>
  signature.getParameters().flatMap((parameter) => {
    const type = checker.getTypeOfSymbol(parameter)
    if (type === undefined) return []
    const isTuple = type.isTypeReference() && type.getTarget().isTupleType()
    const named: ReadonlyArray<Parameter> = isTuple
      ? checker.getTypeArguments(type).map((item) => ({ name: undefined, type: item }))
      : [{ name: parameter.name, type }]
    return named.map(({ name, type: own }) => ({ name, type: checker.getNonNullableType(own) ?? own }))
  })

const takesOptions = ({ name, type }: Parameter) =>
  /(?:Options|Limits|Settings)$/.test(nameOf(type)) ||
  (name === undefined ? nameOf(type) === "__type" : /options|limits|settings|^parts$/i.test(name))

/** Functions and arrays that are called options are no objects of options. */
const isLiteral = (parts: Alternative) =>
  parts.every(
    (part) => !checker.isArrayLikeType(part) && checker.getSignaturesOfType(part, SignatureKind.Call).length === 0
  )

const problems: Array<string> = []

const exportsOf = (file: string): ReadonlyArray<Symbol> => {
  const source = program.getSourceFile(`${root}/${file}`)
  const module = source === undefined ? undefined : checker.getSymbolAtLocation(source)
  return module === undefined ? [] : checker.getExportsOfModule(module)
}

const doorsOf = (file: string): ReadonlyArray<Door> => {
  const [, room = "", ...path] = file.replace(/[.]ts$/, "").split("/")
  const moduleName = path.at(-1) ?? ""
  return exportsOf(file).flatMap((exported) => {
    const symbol = exported.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    const type =
      symbol.flags & (SymbolFlags.Variable | SymbolFlags.Function) ? checker.getTypeOfSymbol(symbol) : undefined
    if (type === undefined) return []
    // A layer with options is a function, one without is a value: `layer()` says that nothing is missing.
    for (const signature of checker.getSignaturesOfType(type, SignatureKind.Call)) {
      const result = checker.getReturnTypeOfSignature(signature)
      if (result !== undefined && nameOf(result) === "Layer" && signature.getParameters().length === 0)
        problems.push(`${file}: ${exported.name} takes no options, so it must be a layer, and not a function`)
    }
    const parameters = checker.getSignaturesOfType(type, SignatureKind.Call).flatMap(parametersOf)
    const alternatives = parameters
      .filter(takesOptions)
      .flatMap((parameter) => alternativesOf(parameter.type).filter(isLiteral))
    return alternatives.length === 0
      ? []
      : [
          {
            room,
            file,
            exported: exported.name,
            name: `${lowerFirst(moduleName)}${upperFirst(exported.name)}`,
            alternatives
          }
        ]
  })
}

const files = globSync("src/{*,models/bridges,models/local,testing/conformance}/[A-Z]*.ts").sort()
const doors = files.flatMap(doorsOf)
if (doors.length < 150) throw new Error(`only ${doors.length} constructors were found: this check would check nothing`)

/** Where the shapes of a folder are. */
const shapesOf = (room: string) => (room === "core" ? "src/core/schema/shapes.ts" : `src/${room}/internal/shapes.ts`)

const header =
  "/** The shapes of options, by which constructors check them. `npm run options` writes this file from the types. */"

const sortFields = (shape: string) => shape.split(";").toSorted().join(";")
const normalise = (shape: string) => sortFields(shape.replaceAll("~effect/Config~", ""))
for (const room of new Set(doors.map((door) => door.room))) {
  const to = shapesOf(room)
  const sources = globSync(`src/${room}/**/*.ts`)
    .filter((file) => file !== to)
    .map((file) => readFileSync(file, "utf8"))
    .filter((text) => text.includes("shapes.ts"))
  const used = [
    ...new Set(sources.flatMap((text) => [...text.matchAll(/\bshapes\.(?!ts\b)(\w+)/g)].map(([, name = ""]) => name)))
  ]
  const before = existsSync(to) ? readFileSync(to, "utf8") : ""
  const written = new Map(
    [...before.matchAll(/^export const (\w+) =\s+"(.*)"$/gm)].map(([, name = "", shape = ""]) => [name, shape])
  )
  const lines = used.toSorted().flatMap((name) => {
    const door = doors.find((one) => one.room === room && one.name === name)
    if (door === undefined) {
      problems.push(`src/${room} uses shapes.${name}, and there is no such constructor`)
      return []
    }
    const former = written.get(name)
    const fresh = shapeOf(door.alternatives)
    // The order of the parts of an intersection is the compiler's: any file may change it.
    const shape = former !== undefined && sortFields(former) === sortFields(fresh) ? former : fresh
    const line = `export const ${name} = ${JSON.stringify(shape)}`
    // As oxfmt breaks it.
    return [line.length > 120 ? line.replace(" = ", " =\n  ") : line]
  })
  const text = lines.length === 0 ? "" : `${header}\n\n${lines.join("\n\n")}\n`
  if (before === text) continue
  if (isCheck) problems.push(`${to} differs from the types: run npm run options`)
  else writeFileSync(to, text)
}

/** The shapes of a folder by their names, in a form that can be compared. */
const comparable = new Map(
  doors.map(({ alternatives, name, room }) => [`${room} ${name}`, normalise(shapeOf(alternatives))])
)
const reach = makeReach()
/** True if the constructor itself leads to a check by its shape, or by the equal shape of another one. */
const isChecked = ({ exported, file, name, room }: Door) =>
  [...reach(file, exported)].some((used) => comparable.get(`${room} ${used}`) === comparable.get(`${room} ${name}`))

const unwired = doors.filter((door) => !unchecked.test(`${door.room}/${upperFirst(door.name)}`) && !isChecked(door))
problems.push(
  ...unwired.map(
    ({ name, room }) => `${room}: ${name} checks no options: see makeMiddlewareCheck, makeLayerCheck and readOptions`
  )
)

/** The table of a constructor's options, by their sentences. The last one may say the default. */
const tableOf = ({ alternatives, exported, file }: Door): string => {
  const fields = fieldsOf(alternatives).toSorted((left, right) => Number(left.isOptional) - Number(right.isOptional))
  const rows = fields.map(({ isOptional, name, symbols }) => {
    const [symbol] = symbols
    const doc = symbol === undefined ? "" : checker.getDocumentationCommentOfSymbol(symbol)
    const text = doc
      .replaceAll(/\s+/g, " ")
      .replaceAll(/\{@link (\w+)\}/g, "`$1`")
      .replaceAll("|", "\\|")
    const [, meaning = text, initial = isOptional ? "" : "required"] = /^(.*?) ?Default: (.*)\.$/.exec(text) ?? []
    if (initial === "") problems.push(`${exported} of ${file}: the sentence of "${name}" must end with "Default: …."`)
    return `| \`${name}\` | ${initial} | ${meaning.replace(/\.$/, "")} |`
  })
  return ["| option | default | meaning |", "| -- | -- | -- |", ...rows].join("\n")
}

const optionNames = new Map(
  doors.map((door) => [
    `${upperFirst(door.file.split("/").at(-1)?.replace(".ts", "") ?? "")}.${door.exported}`,
    new Set(fieldsOf(door.alternatives).map(({ name }) => name))
  ])
)
for (const page of globSync("docs/*.md").sort()) {
  const before = readFileSync(page, "utf8")
  const after = writeTables(before, (module, name) => {
    const door = doors.find((one) => one.name === `${lowerFirst(module)}${upperFirst(name)}`)
    if (door === undefined) problems.push(`${page} has a table of ${module}.${name}, and there is no such constructor`)
    return door === undefined ? undefined : tableOf(door)
  })
  problems.push(
    ...findHandwritten(after, optionNames).map(
      (table) => `${page} lists ${table} by hand: write <!-- options:Module.make:start --> and its end instead`
    )
  )
  if (after === before) continue
  if (isCheck) problems.push(`${page} has a table of options that differs from the types: run npm run options`)
  else writeFileSync(page, after)
}

/** Options without a sentence, by the place of their declaration. */
const undocumented = new Map<string, string>()
const seen = new Set<string>()
const visit = (where: string, fields: ReadonlyArray<Property>): void => {
  for (const { name, symbols, types } of fields) {
    if (name.startsWith("~") || name.startsWith("__@")) continue
    for (const symbol of symbols) {
      const [declaration] = symbol.declarations
      const key = declaration === undefined ? "" : `${declaration.path}:${declaration.index}`
      if (!isOwn(symbol) || seen.has(key)) continue
      seen.add(key)
      if (checker.getDocumentationCommentOfSymbol(symbol).trim() === "") undocumented.set(key, `${where}.${name}`)
    }
    if (where.split(".").length > 6) continue
    const nested = types.flatMap((type) => partsOf(type)).flatMap(alternativesOf)
    if (nested.length > 0) visit(`${where}.${name}`, fieldsOf(nested))
  }
}

/** The literals that a value holds: itself, items of arrays, values of records. */
const partsOf = (type: Type, depth = 0): ReadonlyArray<Type> =>
  membersOf(type).flatMap((member) => {
    if (isStruct(member)) return [member]
    const isArray = checker.isArrayLikeType(member)
    const items = isArray && member.isTypeReference() ? checker.getTypeArguments(member) : []
    const values = isArray || checker.getPropertiesOfType(member).length > 0 ? [] : checker.getIndexInfosOfType(member)
    return depth > 2
      ? []
      : [...items, ...values.map(({ valueType }) => valueType)].flatMap((one) => partsOf(one, depth + 1))
  })
for (const { alternatives, name, room } of doors) visit(`${room}/${name}`, fieldsOf(alternatives))

/** The options of a type's methods: of a service, of a chat, of a handle. */
const visitMethods = (where: string, type: Type): void => {
  for (const method of checker.getPropertiesOfType(type)) {
    const own = isOwn(method) ? checker.getTypeOfSymbol(method) : undefined
    if (own === undefined) continue
    for (const signature of checker.getSignaturesOfType(own, SignatureKind.Call))
      visitParameters(where, method, signature)
  }
}
const visitParameters = (where: string, method: Symbol, signature: Signature): void => {
  for (const { type } of parametersOf(signature).filter(takesOptions))
    visit(`${where}.${method.name}`, fieldsOf(alternativesOf(type).filter(isLiteral)))
}
for (const file of files) {
  for (const exported of exportsOf(file)) {
    const symbol = exported.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
    const type = checker.getDeclaredTypeOfSymbol(symbol)
    if (type === undefined) continue
    const where = `${file} ${exported.name}`
    if (/(?:Options|Limits|Settings)$/.test(exported.name))
      visit(where, fieldsOf(alternativesOf(type).filter(isLiteral)))
    visitMethods(where, type)
  }
}
problems.push(...[...undocumented.values()].map((option) => `${option} has no JSDoc sentence`))

api.close()
if (problems.length > 0) throw new Error(`${problems.join("\n")}\n${problems.length} problems`)
console.log(`options: ${doors.length} constructors, ${seen.size} options`)
