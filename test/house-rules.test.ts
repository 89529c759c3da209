import { describe, expect, it } from "@effect/vitest"
import { parseAst } from "rolldown/parseAst"
import houseRules from "../scripts/house-rules.ts"

type Rule = keyof typeof houseRules.rules

/** What a rule says of a source: visits it from the outside in, as the linter does. */
const reported = (name: Rule, source: string): number => {
  let reports = 0
  const visitor: { readonly [type: string]: ((node: never) => void) | undefined } = houseRules.rules[name].create({
    report: () => {
      reports += 1
    }
  })
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return
    if ("type" in node && typeof node.type === "string") visitor[node.type]?.(node as never)
    for (const part of Object.values(node)) visit(part)
  }
  visit(parseAst(source, { lang: "ts" }))
  return reports
}

describe("house rules", () => {
  it("a promise that can be rejected and that foreign code may drop is observed", () => {
    for (const loose of [
      "new Promise((resolve, reject) => reject(1))",
      "new Promise(executor)",
      "new Promise(function (resolve, reject) {})",
      "f({ next: () => new Promise((resolve, reject) => {}) })",
      "Promise.withResolvers()",
      "Effect.runPromise(effect)",
      "Effect.runPromiseWith(context)(effect)",
      "Effect.runPromiseExit(effect)",
      "sdk.on(() => Effect.runPromise(effect))",
      "observed(other(Effect.runPromise(effect)))"
    ]) {
      expect([loose, reported("no-loose-promise", loose) > 0]).toEqual([loose, true])
    }
    for (const fine of [
      "new Promise((resolve) => resolve(1))",
      "observed(new Promise((resolve, reject) => reject(1)))",
      "sdk.on(() => observed(Effect.runPromise(effect)))",
      "observed(Effect.runPromiseWith(context)(effect))",
      "Effect.runFork(effect)",
      "Promise.all([])"
    ]) {
      expect([fine, reported("no-loose-promise", fine)]).toEqual([fine, 0])
    }
  })

  it("a value is named by a noun; public names are read behind their module", () => {
    const vague = "const found = 1; export const stored = 2; for (const given of all) { let said = function () {} }"
    expect(reported("noun-for-value", vague)).toBe(3)
    expect(reported("noun-for-value", "const entry = { found: 1 }; const { kept } = entry; const askedCount = 1")).toBe(
      0
    )
  })

  it("a table is looked up by its own keys only", () => {
    for (const open of [
      "const table: { readonly [name: string]: number } = { a: 1 }; const readKey = (key) => table[key]",
      "export const table: Record<string, number> = { a: 1 }; f(table[event.type] ?? 0)",
      "const table: Readonly<Record<string, number>> = {}; Object.hasOwn(table, key) ? table[key] : undefined"
    ]) {
      expect([open, reported("no-open-lookup", open)]).toEqual([open, 1])
    }
    for (const fine of [
      "const table: { readonly [name: string]: number } = { a: 1 }; valueAt(table, key)",
      "const table: { readonly [status: number]: string } = { 404: 'gone' }; table[status]",
      "const table: { readonly [K in Kind]: number } = { a: 1 }; table[kind]",
      'const table: { readonly [name: string]: number } = { a: 1 }; table["a"]',
      "const table: { readonly [name: string]: number } = read(); table[key]"
    ]) {
      expect([fine, reported("no-open-lookup", fine)]).toEqual([fine, 0])
    }
  })

  it("a class is the type of an error, a value or a service", () => {
    for (const source of ["class A {}", "class A extends B {}", "class A extends Error {}"]) {
      expect([source, reported("no-class", source)]).toEqual([source, 1])
    }
    for (const source of [
      'class A extends TaggedError<A>()("A", {}) {}',
      'class A extends Schema.Class<A>("A")({}) {}',
      'class A extends Context.Service<A, {}>()("A") {}'
    ]) {
      expect([source, reported("no-class", source)]).toEqual([source, 0])
    }
  })
})
