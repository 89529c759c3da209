// The Effect modules that dist/index.js imports, found by reading its imports.
import { readFileSync } from "node:fs"

const imports = /^(?:import|export)\s(?:[^"']*?\sfrom\s)?["']([^"']+)["']/gm

export const effectModules = () => {
  const found = new Set()
  const seen = new Set()
  const visit = ({ href }) => {
    if (seen.has(href)) return
    seen.add(href)
    for (const [, specifier] of readFileSync(new URL(href), "utf8").matchAll(imports)) {
      if (specifier.startsWith(".")) visit(new URL(specifier, href))
      else if (specifier.startsWith("effect/")) found.add(specifier)
    }
  }
  visit(new URL("../../dist/index.js", import.meta.url))
  return [...found].sort()
}
