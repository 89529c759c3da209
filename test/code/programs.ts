/** Generates programs as syntax trees: each of them parses, and many of them look for a way out. */
import * as fc from "fast-check"

const names = [
  ..."tools args agent text globalThis this Promise Object Function JSON Reflect Proxy Symbol Error Array Map eval".split(
    " "
  ),
  ..."process require undefined Date Math String RegExp x y".split(" ")
]
const keys = [
  ..."constructor __proto__ prototype then toJSON toString valueOf length a b x call apply bind stack message".split(
    " "
  ),
  ..."env mainModule name get set push map join resolve parse stringify now random".split(" ")
]
const literals = [
  ..."0 1 -1 1e9 2n null true '' 'x' 'constructor' /(a+)+$/ [] ({})".split(" "),
  "'return process'",
  "'return globalThis'",
  "`t`"
]

const list = (items: ReadonlyArray<string>): string => items.map((item) => `(${item})`).join(", ")

/** The source of a program: the body of an async function. */
export const program: fc.Arbitrary<string> = fc
  .letrec<{ expression: string; calm: string; statement: string; body: string }>((tie) => {
    const few = (one: fc.Arbitrary<string>) => fc.array(one, { maxLength: 3 })
    const name = fc.constantFrom(...names)
    const key = fc.constantFrom(...keys)
    /** Expressions of one kind: expressions of a plain function have no await. */
    const expressions = (inner: fc.Arbitrary<string>): ReadonlyArray<fc.Arbitrary<string>> => [
      fc.tuple(inner, key).map(([of, at]) => `(${of})?.${at}`),
      fc.tuple(inner, key).map(([of, at]) => `(${of}).${at}`),
      fc.tuple(inner, inner).map(([of, at]) => `(${of})[${at}]`),
      fc.tuple(inner, few(inner)).map(([of, all]) => `(${of})(${list(all)})`),
      fc.tuple(inner, few(inner)).map(([of, all]) => `new (${of})(${list(all)})`),
      few(inner).map((all) => `[${list(all)}]`),
      fc
        .tuple(key, inner, inner)
        .map(([at, one, two]) => `({ ${JSON.stringify(at)}: (${one}), get x() { return 1 }, ...(${two}) })`),
      fc
        .tuple(fc.constantFrom("+", "==", "instanceof", "in", "??", ","), inner, inner)
        .map(([by, a, b]) => `((${a}) ${by} (${b}))`),
      fc.tuple(inner, inner, inner).map(([a, b, c]) => `((${a}) ? (${b}) : (${c}))`),
      fc.tuple(inner, key).map(([of, at]) => `(delete (${of}).${at})`),
      fc.tuple(fc.constantFrom("typeof", "void", "!"), inner).map(([by, a]) => `(${by} (${a}))`),
      inner.map((a) => `(\`\${${a}}\`)`)
    ]
    return {
      calm: fc.oneof(
        { maxDepth: 3, depthIdentifier: "calm" },
        name,
        fc.constantFrom(...literals),
        ...expressions(tie("calm"))
      ),
      expression: fc.oneof(
        { maxDepth: 4, depthIdentifier: "expression" },
        name,
        fc.constantFrom(...literals),
        ...expressions(tie("expression")),
        tie("expression").map((a) => `(await (${a}))`),
        tie("calm").map((a) => `((x) => (${a}))`),
        tie("body").map((body) => `(async (x) => {${body}})`),
        fc
          .tuple(key, tie("calm"))
          .map(
            ([at, a]) =>
              `(class { static ${at === "prototype" || at === "constructor" ? "x" : at} = (${a}); get y() { return (${a}) } })`
          ),
        fc.tuple(fc.constantFrom("a", "b"), tie("expression")).map(([tool, a]) => `tools.${tool}({ x: (${a}) })`),
        few(tie("calm")).map((all) => `parallel([${all.map((one) => `() => (${one})`).join(", ")}])`)
      ),
      statement: fc.oneof(
        { maxDepth: 3, depthIdentifier: "statement" },
        tie("expression").map((a) => `${a};`),
        tie("expression").map((a) => `{ let x = (${a}); }`),
        fc.tuple(name, key, tie("calm")).map(([of, at, a]) => `(${of}).${at} = (${a});`),
        fc
          .tuple(fc.constantFrom("Object", "Array", "Promise", "Function", "String"), key, tie("calm"))
          .map(([of, at, a]) => `(${of}).prototype.${at} = (${a});`),
        tie("expression").map((a) => `text(${a});`),
        fc.tuple(tie("expression"), tie("body"), tie("body")).map(([a, b, c]) => `if (${a}) {${b}} else {${c}}`),
        fc.tuple(tie("body"), tie("body")).map(([a, b]) => `try {${a}} catch (x) {${b}}`),
        tie("body").map((a) => `for (let y = 0; y < 3; y++) {${a}}`),
        tie("expression").map((a) => `throw (${a});`),
        tie("expression").map((a) => `return (${a});`)
      ),
      body: fc.array(tie("statement"), { maxLength: 4, depthIdentifier: "statement" }).map((all) => all.join("\n"))
    }
  })
  .body.map((body) => `let y = 0;\n${body}\nreturn 1`)
