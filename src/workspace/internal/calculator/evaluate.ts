/** Evaluates arithmetic: numbers, `+ - * / % ^`, parentheses and some functions, in the usual order. */
import * as Result from "effect/Result"
import { valueAt } from "../../../support/json/valueAt.ts"

const functions: { readonly [name: string]: (value: number) => number } = {
  abs: Math.abs,
  ceil: Math.ceil,
  cos: Math.cos,
  exp: Math.exp,
  floor: Math.floor,
  ln: Math.log,
  log10: Math.log10,
  round: Math.round,
  sin: Math.sin,
  sqrt: Math.sqrt,
  tan: Math.tan
}

const constants: { readonly [name: string]: number } = { pi: Math.PI, e: Math.E }

const tokenPattern = /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([a-z]+\d*)|(\*\*|[-+*/%^()×÷−]))/y

type Token = number | string

const missing = "a number is missing"

/** Other ways to write a sign. */
const synonyms: { readonly [sign: string]: string } = { "×": "*", "÷": "/", "−": "-", "**": "^" }

const readTokens = (text: string): Result.Result<ReadonlyArray<Token>, string> => {
  const tokens: Array<Token> = []
  let at = 0
  const end = text.trimEnd().length
  while (at < end) {
    tokenPattern.lastIndex = at
    const match = tokenPattern.exec(text)
    if (match === null) return Result.fail(`${JSON.stringify(text.slice(at, at + 20))} can't be read`)
    const [, number, name, sign = ""] = match
    tokens.push(number === undefined ? (name ?? valueAt(synonyms, sign) ?? sign) : Number(number))
    at = tokenPattern.lastIndex
  }
  return Result.succeed(tokens)
}

const operators: { readonly [sign: string]: { rank: number; apply: (left: number, right: number) => number } } = {
  "+": { rank: 1, apply: (left, right) => left + right },
  "-": { rank: 1, apply: (left, right) => left - right },
  "*": { rank: 2, apply: (left, right) => left * right },
  "/": { rank: 2, apply: (left, right) => left / right },
  "%": { rank: 2, apply: (left, right) => left % right },
  "^": { rank: 4, apply: (left, right) => left ** right }
}

const rankOf = (sign: string): number => (sign === "negate" ? 3 : (valueAt(operators, sign)?.rank ?? 9))

/** Reads tokens onto stacks, so that no depth of parentheses overflows. Each step returns a problem, if any. */
const makeStacks = () => {
  const values: Array<number> = []
  const signs: Array<string> = []
  let expectsValue = true
  const top = () => signs.at(-1) ?? ""

  /** Applies the last sign or function to the last values. */
  const apply = (): string | undefined => {
    const sign = signs.pop() ?? ""
    const right = values.pop()
    if (right === undefined) return missing
    const call = valueAt(functions, sign)
    if (call !== undefined || sign === "negate") {
      values.push(call === undefined ? -right : call(right))
      return undefined
    }
    const left = values.pop()
    const operator = valueAt(operators, sign)
    if (left === undefined || operator === undefined) return missing
    values.push(operator.apply(left, right))
    return undefined
  }

  /** Applies signs up to the last open parenthesis while a condition holds. */
  const applyWhile = (isNext: (sign: string) => boolean): string | undefined => {
    while (signs.length > 0 && top() !== "(" && isNext(top())) {
      const problem = apply()
      if (problem !== undefined) return problem
    }
    return undefined
  }

  const addValue = (value: number): string | undefined => {
    if (!expectsValue) return "there is no sign between two numbers"
    values.push(value)
    expectsValue = false
    return undefined
  }

  const open = (sign: string): string | undefined => {
    if (!expectsValue) return "there is no sign before a parenthesis"
    signs.push(sign)
    return undefined
  }

  const close = (): string | undefined => {
    if (expectsValue) return "something is missing before a parenthesis"
    const problem = applyWhile(() => true)
    if (problem !== undefined) return problem
    if (signs.pop() === undefined) return "a parenthesis is closed that was not opened"
    return Object.hasOwn(functions, top()) ? apply() : undefined
  }

  const addSign = (sign: string): string | undefined => {
    if (expectsValue) {
      if (sign === "-") signs.push("negate")
      return sign === "-" || sign === "+" ? undefined : `a number is missing before ${sign}`
    }
    const own = rankOf(sign)
    const problem = applyWhile((before) => rankOf(before) > own || (rankOf(before) === own && sign !== "^"))
    signs.push(sign)
    expectsValue = true
    return problem
  }

  const addToken = (token: Token): string | undefined => {
    if (typeof token === "number") return addValue(token)
    const constant = valueAt(constants, token)
    if (constant !== undefined) return addValue(constant)
    if (token === "(" || Object.hasOwn(functions, token)) return open(token)
    if (token === ")") return close()
    if (Object.hasOwn(operators, token)) return addSign(token)
    return `${JSON.stringify(token)} is not known; there are ${Object.keys(functions).join(", ")}, pi and e`
  }

  const end = (): Result.Result<number, string> => {
    const problem = expectsValue ? "a number is missing at the end" : applyWhile(() => true)
    if (problem !== undefined) return Result.fail(problem)
    if (signs.length > 0) return Result.fail("a parenthesis is not closed")
    const [value, ...rest] = values
    return value === undefined || rest.length > 0 ? Result.fail("it is no sum") : Result.succeed(value)
  }

  return { addToken, end }
}

/** Evaluates an expression, or explains its first problem. */
export const evaluate = (text: string): Result.Result<number, string> =>
  Result.flatMap(readTokens(text), (tokens) => {
    const stacks = makeStacks()
    for (const token of tokens) {
      const problem = stacks.addToken(token)
      if (problem !== undefined) return Result.fail(problem)
    }
    return stacks.end()
  })
