"""What passes change code with: new instructions, changed operands, edges and blocks."""
