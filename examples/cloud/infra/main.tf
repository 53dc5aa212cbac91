variable "size" {
  type = string
}

resource "terraform_data" "vm" {
  input = var.size
}

output "vm_ip" {
  value      = "192.0.2.7"
  depends_on = [terraform_data.vm]
}
