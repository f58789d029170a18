"""HTML for notebooks and the report: escaped markup, tables, findings, and a style for light and dark pages."""
