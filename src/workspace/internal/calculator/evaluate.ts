/**
 * Works out arithmetic: numbers, `+ - * / % ^`, parentheses, and a few functions, by their usual ranks. Nothing is
 * evaluated as a program.
 */
import * as Result from "effect/Result"

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

const token = /\s*(?:(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([a-z]+\d*)|(\*\*|[-+*/%^()×÷−]))/y

type Token = number | string

/** The signs that people write, as they are meant. */
const meant: { readonly [sign: string]: string } = { "×": "*", "÷": "/", "−": "-", "**": "^" }

const tokensOf = (text: string): Result.Result<ReadonlyArray<Token>, string> => {
  const tokens: Array<Token> = []
  let at = 0
  const end = text.trimEnd().length
  while (at < end) {
    token.lastIndex = at
    const match = token.exec(text)
    if (match === null) return Result.fail(`${JSON.stringify(text.slice(at, at + 20))} can't be read`)
    const [, number, name, sign = ""] = match
    tokens.push(number === undefined ? (name ?? meant[sign] ?? sign) : Number(number))
    at = token.lastIndex
  }
  return Result.succeed(tokens)
}

const rank: { readonly [sign: string]: number } = { "+": 1, "-": 1, "*": 2, "/": 2, "%": 2, negate: 3, "^": 4 }

const calculate = (sign: string, left: number, right: number): number => {
  switch (sign) {
    case "+":
      return left + right
    case "-":
      return left - right
    case "*":
      return left * right
    case "/":
      return left / right
    case "%":
      return left % right
    default:
      return left ** right
  }
}

/** Works on two stacks, so that no depth of parentheses is too deep. */
export const evaluate = (text: string): Result.Result<number, string> =>
  Result.flatMap(tokensOf(text), (tokens) => {
    const values: Array<number> = []
    const signs: Array<string> = []
    let wantsValue = true
    const apply = (): boolean => {
      const sign = signs.pop() ?? ""
      const right = values.pop()
      if (right === undefined) return false
      const of = Object.hasOwn(functions, sign) ? functions[sign] : undefined
      if (of !== undefined || sign === "negate") {
        values.push(of === undefined ? -right : of(right))
        return true
      }
      const left = values.pop()
      if (left === undefined) return false
      values.push(calculate(sign, left, right))
      return true
    }
    const top = () => signs.at(-1) ?? ""
    const isFunction = (name: string) => Object.hasOwn(functions, name)
    for (const one of tokens) {
      if (typeof one === "number" || Object.hasOwn(constants, one)) {
        if (!wantsValue) return Result.fail("there is no sign between two numbers")
        values.push(typeof one === "number" ? one : (constants[one] ?? 0))
        wantsValue = false
      } else if (one === "(" || isFunction(one)) {
        if (!wantsValue) return Result.fail("there is no sign before a parenthesis")
        signs.push(one)
      } else if (one === ")") {
        if (wantsValue) return Result.fail("something is missing before a parenthesis")
        while (signs.length > 0 && top() !== "(") if (!apply()) return Result.fail("a number is missing")
        if (signs.pop() === undefined) return Result.fail("a parenthesis is closed that was not opened")
        if (isFunction(top()) && !apply()) return Result.fail("a number is missing")
      } else if (!Object.hasOwn(rank, one) || one === "negate") {
        return Result.fail(
          `${JSON.stringify(one)} is not known; there are ${Object.keys(functions).join(", ")}, pi and e`
        )
      } else if (wantsValue) {
        if (one !== "-" && one !== "+") return Result.fail(`a number is missing before ${one}`)
        if (one === "-") signs.push("negate")
      } else {
        const own = rank[one] ?? 0
        while (
          signs.length > 0 &&
          top() !== "(" &&
          ((rank[top()] ?? 9) > own || (rank[top()] === own && one !== "^"))
        ) {
          if (!apply()) return Result.fail("a number is missing")
        }
        signs.push(one)
        wantsValue = true
      }
    }
    if (wantsValue) return Result.fail("a number is missing at the end")
    while (signs.length > 0) {
      if (top() === "(") return Result.fail("a parenthesis is not closed")
      if (!apply()) return Result.fail("a number is missing")
    }
    const [value, ...rest] = values
    return value === undefined || rest.length > 0 ? Result.fail("it is no sum") : Result.succeed(value)
  })
