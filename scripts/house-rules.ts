/**
 * Lint rules of this repository, loaded by oxlint (`jsPlugins` in `.oxlintrc.json`).
 */

interface Node {
  readonly type: string
  readonly name?: string
  readonly object?: Node
  readonly property?: Node
  readonly callee?: Node
  readonly arguments?: ReadonlyArray<Node>
  readonly expression?: Node
  readonly superClass?: Node | null
  readonly params?: ReadonlyArray<Node>
  readonly computed?: boolean
  readonly body?: ReadonlyArray<Node>
  readonly declaration?: Node | null
  readonly declarations?: ReadonlyArray<Node>
  readonly id?: Node
  readonly init?: Node | null
  readonly typeAnnotation?: Node
  readonly typeArguments?: Node | null
  readonly typeName?: Node
  readonly members?: ReadonlyArray<Node>
  readonly parameters?: ReadonlyArray<Node>
}

interface Context {
  readonly report: (problem: { readonly node: Node; readonly message: string }) => void
}

const rule = (visitor: (report: (node: Node, message: string) => void) => Record<string, (node: Node) => void>) => ({
  create: (context: Context) => visitor((node, message) => context.report({ node, message }))
})

/** `Schema.Class<A>("A")({})` is `Schema.Class`: peels the calls off. */
const callee = (node: Node | null | undefined): Node | undefined =>
  node?.type === "CallExpression" ? callee(node.callee) : (node ?? undefined)

const isMemberOf = (node: Node | undefined, modules: ReadonlyArray<string>): boolean =>
  node?.type === "MemberExpression" && modules.includes(node.object?.name ?? "")

const isRun = (node: Node | undefined): boolean => {
  const name = callee(node)
  return isMemberOf(name, ["Effect"]) && (name?.property?.name ?? "").startsWith("run")
}

const noTry = rule((report) => ({
  TryStatement: (node) =>
    report(node, "No try statement in src: use Effect.try, Effect.tryPromise or Effect.acquireRelease.")
}))

const noThrow = rule((report) => ({
  ThrowStatement: (node) => report(node, "No throw in src: a failure is a value (Effect.fail), a bug is Effect.die.")
}))

const classMessage =
  "No class in src other than one that extends TaggedError, or a Schema.* or Context.* constructor: use values and functions."

const noClass = rule((report) => {
  const check = (node: Node) => {
    const base = callee(node.superClass)
    if (base?.name !== "TaggedError" && !isMemberOf(base, ["Schema", "Context"])) report(node, classMessage)
  }
  return { ClassDeclaration: check, ClassExpression: check }
})

const noFloatingEffect = rule((report) => ({
  ExpressionStatement: (node) => {
    const call = node.expression
    if (call?.type !== "CallExpression") return
    const isPipe = call.callee?.type === "MemberExpression" && call.callee.property?.name === "pipe"
    const isEffect = isMemberOf(callee(call), ["Effect", "Stream", "Layer"])
    if (isPipe ? !isRun(call.arguments?.at(-1)) : isEffect && !isRun(call)) {
      report(node, "This Effect, Stream or Layer is built and thrown away: yield* it, return it or run it.")
    }
  }
}))

const looseMessage =
  "A promise that can be rejected and is made here goes through observed(…): foreign code may drop it, and nobody's rejection ends the process."

/** `new Promise((resolve, reject) => …)`, `Promise.withResolvers()`, `Effect.runPromise(…)`: who gets them may drop them. */
const canBeLoose = (node: Node): boolean => {
  if (node.type === "NewExpression") {
    const [executor] = node.arguments ?? []
    return node.callee?.name === "Promise" && (executor?.params === undefined || executor.params.length > 1)
  }
  const { callee: made } = node
  return (
    (isMemberOf(made, ["Promise"]) && made?.property?.name === "withResolvers") ||
    (isMemberOf(callee(node), ["Effect"]) && (callee(node)?.property?.name ?? "").startsWith("runPromise"))
  )
}

const noLoosePromise = rule((report) => {
  const observed = new Set<Node | undefined>()
  const check = (node: Node): void => {
    if (canBeLoose(node) && !observed.has(node)) report(node, looseMessage)
  }
  return {
    NewExpression: check,
    CallExpression: (node) => {
      if (node.callee?.name !== "observed") return check(node)
      const [promise] = node.arguments ?? []
      // `Effect.runPromiseWith(context)(effect)` is two calls.
      observed.add(promise).add(promise?.callee)
      return undefined
    }
  }
})

const isString = (type: Node | undefined): boolean => type?.type === "TSStringKeyword"

/** `{ readonly [name: string]: A }`, `Record<string, A>`, `Readonly<Record<string, A>>` */
const isTable = (type: Node | undefined): boolean => {
  if (type?.type === "TSTypeReference") {
    const [first] = type.typeArguments?.params ?? []
    return type.typeName?.name === "Record" ? isString(first) : type.typeName?.name === "Readonly" && isTable(first)
  }
  const isSignature = ({ parameters = [], type: kind }: Node) =>
    kind === "TSIndexSignature" && isString(parameters[0]?.typeAnnotation?.typeAnnotation)
  return type?.type === "TSTypeLiteral" && type.members?.some(isSignature) === true
}

/** Tables of a module are objects, in which every name of `Object.prototype` is found, too. */
const noOpenLookup = rule((report) => {
  const tables = new Set<string | undefined>()
  return {
    Program: ({ body = [] }) => {
      tables.clear()
      for (const statement of body) {
        for (const { id, init } of (statement.declaration ?? statement).declarations ?? []) {
          if (init?.type === "ObjectExpression" && isTable(id?.typeAnnotation?.typeAnnotation)) tables.add(id?.name)
        }
      }
    },
    MemberExpression: (node) => {
      if (node.computed === true && node.property?.type !== "Literal" && tables.has(node.object?.name)) {
        report(node, `Look up a table by valueAt(${node.object?.name}, key): "constructor" is in every object.`)
      }
    }
  }
})

const participles = new Set(
  "said found made given told asked kept shown taken known done stored written chosen sent lost gone meant spoken held".split(
    " "
  )
)

/** A participle says what was done to a value, and not what it is: it can't be searched for, and shows no type. */
const nounForValue = rule((report) => {
  // Public names are read behind their module: `Connection.stored`.
  const publicNames = new Set<Node | undefined>()
  return {
    ExportNamedDeclaration: ({ declaration }) => {
      for (const { id } of declaration?.declarations ?? []) publicNames.add(id)
    },
    VariableDeclarator: ({ id, init }) => {
      if (id?.type !== "Identifier" || !participles.has(id.name ?? "") || publicNames.has(id)) return
      const isFunction = init?.type === "ArrowFunctionExpression" || init?.type === "FunctionExpression"
      report(id, `Name the ${isFunction ? "function by a verb and a noun" : "value by a noun"}, not "${id.name}".`)
    }
  }
})

export default {
  meta: { name: "house" },
  rules: {
    "no-try": noTry,
    "no-throw": noThrow,
    "no-class": noClass,
    "no-floating-effect": noFloatingEffect,
    "no-loose-promise": noLoosePromise,
    "no-open-lookup": noOpenLookup,
    "noun-for-value": nounForValue
  }
}
