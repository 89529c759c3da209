import { valueAt } from "../../support/json/valueAt.ts"
import { cut } from "../../support/text/text.ts"
/** A reliability diagram as SVG. */
import { visible } from "../../support/text/untrusted.ts"
import type { Bin, Fit } from "./calibration.ts"

const entities: { readonly [character: string]: string } = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;"
}

/** A text of strangers on one line of an SVG. */
const textOf = (text: string): string =>
  cut(visible(text).replaceAll(/\s+/g, " "), 60).replaceAll(
    /[&<>"']/g,
    (character) => valueAt(entities, character) ?? ""
  )

const size = 240
const [left, top] = [36, 40]

const x = (probability: number): string => (left + probability * size).toFixed(1)
const y = (probability: number): string => (top + (1 - probability) * size).toFixed(1)

/** What a diagram shows. */
interface DiagramData {
  readonly title: string
  readonly bins: ReadonlyArray<Bin>
  readonly fit: Fit
  readonly count: number
  readonly stated: number
  readonly calibrated: number
}

const curveOf = ({ from, map, to }: Fit): string =>
  Array.from({ length: 101 }, (_, index) => index / 100)
    .filter((stated) => stated >= from && stated <= to)
    .map((stated) => `${x(stated)},${y(map(stated))}`)
    .join(" ")

/** Draws stated against observed probabilities: bins by their labels, the calibrated curve, the diagonal. */
export const draw = ({ bins, calibrated, count, fit, stated, title }: DiagramData): string => {
  const largest = Math.max(1, ...bins.map((bin) => bin.count))
  const dots = bins.map(
    (bin) =>
      `<circle cx="${x(bin.stated)}" cy="${y(bin.observed)}" r="${(2 + 5 * Math.sqrt(bin.count / largest)).toFixed(1)}" fill="#2563eb"/>`
  )
  const ticks = [0, 0.5, 1].flatMap((at) => [
    `<text x="${x(at)}" y="${top + size + 14}" text-anchor="middle">${at}</text>`,
    `<text x="${left - 6}" y="${y(at)}" text-anchor="end" dominant-baseline="middle">${at}</text>`
  ])
  const error = `${count} labels · ECE ${stated.toFixed(3)} stated, ${calibrated.toFixed(3)} calibrated`
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + size + 14} ${top + size + 36}" font-family="sans-serif" font-size="10">`,
    `<rect width="100%" height="100%" fill="#ffffff"/>`,
    `<text x="${left}" y="16" font-size="12">${textOf(title)}</text>`,
    `<text x="${left}" y="30" fill="#555555">${error}</text>`,
    `<rect x="${left}" y="${top}" width="${size}" height="${size}" fill="none" stroke="#999999"/>`,
    `<line x1="${x(0)}" y1="${y(0)}" x2="${x(1)}" y2="${y(1)}" stroke="#999999" stroke-dasharray="4 3"/>`,
    `<polyline points="${curveOf(fit)}" fill="none" stroke="#dc2626"/>`,
    ...dots,
    ...ticks,
    `<text x="${left + size / 2}" y="${top + size + 28}" text-anchor="middle">stated</text>`,
    "</svg>"
  ].join("\n")
}
