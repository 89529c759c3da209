/** The parser of YAML: many modules, which most programs never need. */
import * as Effect from "effect/Effect"
import type * as Parser from "yaml"
import { onDemand } from "../effect/once.ts"

export type Yaml = typeof Parser

/** Loads the parser. */
export const yaml = onDemand(() => import("yaml"))

/** Reports whether all keys are scalars. A map or a list as a key takes the parser minutes. */
const hasPlainKeys = ({ isScalar, visit }: Yaml, document: Parser.Document): boolean => {
  let isPlain = true
  visit(document, {
    Pair: (_, { key }) => {
      if (isScalar(key)) return undefined
      isPlain = false
      return visit.BREAK
    }
  })
  return isPlain
}

const attempt = <A>(run: () => A): Effect.Effect<A, string> =>
  Effect.try({ try: run, catch: (cause) => (cause instanceof Error ? cause.message : String(cause)) })

/** Parses a text of limited length without aliases; fails with the problem. JSON is YAML, too. */
export const parseYaml = Effect.fnUntraced(function* (text: string, maxLength: number) {
  if (text.length > maxLength) return yield* Effect.fail(`it is longer than ${maxLength} characters`)
  const parser = yield* yaml
  const document = yield* attempt(() => parser.parseDocument(text, { logLevel: "silent" }))
  const [error] = document.errors
  if (error !== undefined) return yield* Effect.fail(error.message)
  if (!(yield* attempt(() => hasPlainKeys(parser, document)))) {
    return yield* Effect.fail("a key in it is a list or a map; give it a text")
  }
  return yield* attempt((): unknown => document.toJS({ maxAliasCount: 0 }))
})
